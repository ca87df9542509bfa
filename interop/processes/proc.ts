/** Figures of processes from /proc: Linux only. */
import { readFileSync } from 'node:fs'

const read = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')

/** Returns the memory of a process in RAM, in bytes. */
export const residentBytes = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(read(pid, 'status'))?.[1] ?? 0) * 1024

/** Returns the user and system time of a process so far, in seconds. Linux counts it in hundredths of a second. */
export function cpuSeconds(pid: number): number {
  // The name of the program, in parentheses, may contain spaces.
  const fields = read(pid, 'stat')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
