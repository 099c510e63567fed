// The engine renders the newest texts in a worker. A render that newer texts overtake is dropped: its result is shown
// to nobody, and a worker that is slow with it is replaced. The module is compiled once, whatever becomes of workers.
const patience = 1500 // milliseconds that newer texts wait for a worker

// compiled is tegen as the page's own host has it: compressed, so that its size is the same at every host.
async function compiled() {
  const answer = await fetch('tegen.wasm.gz')
  if (!answer.ok) throw new Error(`tegen.wasm.gz: ${answer.status} ${answer.statusText}`)
  const plain = answer.headers.get('content-encoding') === 'gzip' // a host that says so has the browser unpack it
  const body = plain ? answer.body : answer.body.pipeThrough(new DecompressionStream('gzip'))
  return WebAssembly.compileStreaming(new Response(body, {headers: {'content-type': 'application/wasm'}}))
}

// A worker from a blob has the page's rules, and may ask nobody either; one from a file has what its server says.
function spawn() {
  const script = `importScripts(${JSON.stringify(new URL('worker.js', document.baseURI).href)})`
  return new Worker(URL.createObjectURL(new Blob([script], {type: 'text/javascript'})))
}

export function engine({show, fail}) {
  const module = compiled()
  let worker, ready = false, running = null, waiting = null, last = 0, timer = 0

  function begin() {
    ready = false
    worker = spawn()
    worker.onerror = (event) => { event.preventDefault(); failed(event.message) }
    worker.onmessage = ({data}) => answered(data)
    const own = worker
    module.then((m) => own.postMessage({module: m}), (error) => fail(String(error)))
  }

  function failed(why) {
    restart()
    fail(why)
  }

  function restart() {
    clearTimeout(timer)
    worker.terminate()
    running = null
    begin()
  }

  function answered(data) {
    if (data.failed) return failed(data.failed)
    clearTimeout(timer)
    if (data.ready) {
      ready = true
    } else {
      running = null
      if (!waiting) show(data.result, data.took)
    }
    next()
  }

  function next() {
    if (!ready || running || !waiting) return
    running = waiting
    waiting = null
    worker.postMessage(running)
  }

  begin()
  return {
    render(texts) {
      waiting = {id: ++last, ...texts}
      if (running) {
        clearTimeout(timer)
        timer = setTimeout(restart, patience)
      }
      next()
    },
  }
}
