/** What can still be read of a state folder that is refused for its damage: the newest state before the place where the damage begins. */
import { readCheckpoint } from './checkpoint.ts'
import { DamagedData } from './damage.ts'
import type { Files } from './files.ts'
import type { Images } from './image.ts'
import { checkpointName, generationsIn, type Log, logName, type Position, readLog, readMark, replayLog } from './state-folder.ts'

export interface Salvaged {
  readonly images: Images
  /** What could not be read: acknowledged writes behind that are lost. */
  readonly damage: readonly DamagedData[]
}

/** @throws DamagedData when there is nothing to begin from */
export async function salvageState(files: Files, folder: string): Promise<Salvaged> {
  const damage: DamagedData[] = []
  /** What was read; undefined where damage is in the way, which is noted. */
  const orDamaged = async <T>(reading: Promise<T>): Promise<T | undefined> => {
    try {
      return await reading
    } catch (err) {
      if (!(err instanceof DamagedData)) throw err
      damage.push(err)
      return undefined
    }
  }
  const acknowledged = await orDamaged(readMark(files, folder))
  const { logs, checkpoints } = await generationsIn(files, folder)

  // Newest first: the fewer logs are needed, the less can be damaged.
  let images: Images | undefined
  let generation = 1
  for (const base of checkpoints.toReversed()) {
    images = (await orDamaged(readCheckpoint(files, `${folder}/${checkpointName(base)}`, 'checkpoint')))?.images
    generation = base
    if (images) break
  }
  if (!images && logs[0] === 1) [images, generation] = [new Map(), 1]
  if (!images) throw damage[0] ?? new DamagedData(folder, undefined, 'there is neither a checkpoint nor the first log')

  const last = Math.max(generation, acknowledged?.generation ?? 0, ...logs)
  let end: Position = { generation, offset: 0 }
  let log: Log | undefined = await orDamaged(readLog(files, `${folder}/${logName(generation)}`, generation))
  for (let next = log?.first; log && next !== undefined; ) {
    const following: Log | undefined =
      generation < last ? await orDamaged(readLog(files, `${folder}/${logName(generation + 1)}`, generation + 1)) : undefined
    const { ending, number } = replayLog(images, log, next, following?.header.previousEnd)
    end = { generation, offset: ending.at }
    if (ending.kind === 'damaged') damage.push(new DamagedData(log.path, ending.at, ending.why))
    if (ending.kind !== 'whole') break
    ;[next, log, generation] = [number, following, generation + 1]
  }
  if (acknowledged && isBefore(end, acknowledged) && damage.length === 0) {
    const why = `it ends there, and writes up to byte ${acknowledged.offset} of ${logName(acknowledged.generation)} have been acknowledged`
    damage.push(new DamagedData(`${folder}/${logName(end.generation)}`, end.offset, why))
  }
  return { images, damage }
}

const isBefore = (one: Position, other: Position): boolean =>
  one.generation < other.generation || (one.generation === other.generation && one.offset < other.offset)
