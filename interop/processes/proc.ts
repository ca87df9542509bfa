/** Memory and CPU time of processes, read from /proc (only on Linux). */
import { readFileSync } from 'node:fs'

const read = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')

/** Returns the resident memory (RSS) of a process, in bytes. */
export const residentBytes = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(read(pid, 'status'))?.[1] ?? 0) * 1024

/** Returns the CPU time that a process has used, user and system time, in seconds. Linux reports hundredths of a second. */
export function cpuSeconds(pid: number): number {
  // The name of the program, in parentheses, may contain spaces.
  const fields = read(pid, 'stat')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
