/** Reads as much as possible of a damaged state folder: the newest readable checkpoint, and the logs after it up to the first damage. */
import { largest } from '@capstan/kube'
import { readCheckpoint } from './checkpoint.ts'
import { DamagedData } from './damage.ts'
import type { Files } from './files.ts'
import type { Snapshots } from './snapshot.ts'
import {
  checkpointName,
  generationsIn,
  type Log,
  logName,
  type Position,
  readLog,
  readCommitMarker,
  replayLog,
} from './state-folder.ts'

export interface Salvaged {
  readonly snapshots: Snapshots
  /** The damage that was found. If there is any, acknowledged writes may be missing from `snapshots`. */
  readonly damage: readonly DamagedData[]
}

/**
 * Reads the readable part of a state folder.
 * @throws DamagedData when no checkpoint can be read and log 1 does not exist, or when the content of a frame cannot be applied to the state
 * before it
 */
export async function salvageState(files: Files, folder: string): Promise<Salvaged> {
  const damage: DamagedData[] = []
  /** Returns the result of a read. When the data is damaged, records the damage and returns undefined. */
  const orDamaged = async <T>(reading: Promise<T>): Promise<T | undefined> => {
    try {
      return await reading
    } catch (err) {
      if (!(err instanceof DamagedData)) throw err
      damage.push(err)
      return undefined
    }
  }
  const acknowledged = await orDamaged(readCommitMarker(files, folder))
  const { logs, checkpoints } = await generationsIn(files, folder)

  // The newest checkpoint comes first, because fewer logs are read after it, and fewer may be damaged.
  let snapshots: Snapshots | undefined
  let generation = 1
  for (const base of checkpoints.toReversed()) {
    snapshots = (await orDamaged(readCheckpoint(files, `${folder}/${checkpointName(base)}`, 'checkpoint')))?.snapshots
    generation = base
    if (snapshots) break
  }
  if (!snapshots && logs[0] === 1) [snapshots, generation] = [new Map(), 1]
  if (!snapshots) throw damage[0] ?? new DamagedData(folder, undefined, 'there is neither a checkpoint nor the first log')

  const last = Math.max(generation, acknowledged?.generation ?? 0, largest(logs))
  let end: Position = { generation, offset: 0 }
  let log: Log | undefined = await orDamaged(readLog(files, `${folder}/${logName(generation)}`, generation))
  for (let next = log?.first; log && next !== undefined; ) {
    const nextLog: Log | undefined =
      generation < last ? await orDamaged(readLog(files, `${folder}/${logName(generation + 1)}`, generation + 1)) : undefined
    const { ending, number } = replayLog(snapshots, log, next, nextLog?.header.previousEnd)
    end = { generation, offset: ending.at }
    if (ending.kind === 'damaged') damage.push(new DamagedData(log.path, ending.at, ending.problem))
    if (ending.kind !== 'whole') break
    ;[next, log, generation] = [number, nextLog, generation + 1]
  }
  if (acknowledged && isBefore(end, acknowledged) && damage.length === 0) {
    const problem = `it ends there, and writes up to byte ${acknowledged.offset} of ${logName(acknowledged.generation)} have been acknowledged`
    damage.push(new DamagedData(`${folder}/${logName(end.generation)}`, end.offset, problem))
  }
  return { snapshots, damage }
}

const isBefore = (position: Position, other: Position): boolean =>
  position.generation < other.generation || (position.generation === other.generation && position.offset < other.offset)
