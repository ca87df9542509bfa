/**
 * Serves the sample extension over TLS. Once it does it prints one line of JSON with what an ExtensionConfig needs to know, such as
 * {"url": "https://127.0.0.1:40123", "caBundle": "LS0t…"}. What happens afterwards is logged to stderr. Ends on SIGTERM or SIGINT.
 */
import { runExtension } from '@capstan/extension'
import { sampleExtension } from './extension.ts'

await runExtension(sampleExtension())
