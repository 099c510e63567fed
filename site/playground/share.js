// A share link holds the texts in its fragment, which no browser sends to a server.
const most = 1 << 20 // bytes of the texts of a link: a few of a link may stand for gigabytes

const base64url = (bytes) => {
  let text = ''
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))

const through = (bytes, stream) => new Blob([bytes]).stream().pipeThrough(stream)

async function read(stream) {
  const parts = []
  let size = 0
  for (const reader = stream.getReader(); ;) {
    const {done, value} = await reader.read()
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer())
    if ((size += value.length) > most) {
      await reader.cancel()
      throw new Error(`it holds more than ${most >> 20} MiB`)
    }
    parts.push(value)
  }
}

// fragment is what follows the # of a link to the texts.
export async function fragment(texts) {
  const json = new TextEncoder().encode(JSON.stringify([texts.job, texts.environment, texts.policy]))
  if (json.length > most) throw new Error(`a link holds no more than ${most >> 20} MiB`)
  return `v1.${base64url(await read(through(json, new CompressionStream('deflate-raw'))))}`
}

// textsOf is what a fragment holds: null of one that is no share link.
export async function textsOf(hash) {
  const text = hash.replace(/^#/, '')
  if (!text.startsWith('v1.')) return null
  const bytes = await read(through(bytesOf(text.slice(3)), new DecompressionStream('deflate-raw')))
  const [job, environment, policy = ''] = JSON.parse(new TextDecoder().decode(bytes)) // older links have no policy
  if ([job, environment, policy].some((own) => typeof own !== 'string')) throw new Error('it holds no texts')
  return {job, environment, policy}
}
