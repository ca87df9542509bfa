/**
 * Serves the sample extension over TLS. When it is ready, it prints one line of JSON with the values for an ExtensionConfig. With the flag
 * `--dev`, which generates a certificate, this is {"url": "https://127.0.0.1:40123", "caBundle": "LS0t…"}. It logs to stderr, and ends on
 * SIGTERM or SIGINT.
 */
import { runExtension } from '@capstan/extension'
import { sampleExtension } from './extension.ts'

await runExtension(sampleExtension())
