/** Codes of frame types. RFC 9113, section 6. */
const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
}

/** Flag of the last DATA or HEADERS frame that the sender sends on a stream. */
export const endStream = 1
/** Flag of a frame that ends the headers: no continuation follows. */
export const endHeaders = 4

/** Encodes an HTTP/2 frame, valid or invalid, for tests with incorrect peers. */
export function frame(
  type: keyof typeof frameTypes | number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = typeof type === 'number' ? type : frameTypes[type]
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
