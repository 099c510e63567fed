// The worker holds tegen and does one render at a time. It answers {ready}, {failed} or {id, result, took}.
import 'wasm_exec' // the Go toolchain's, which defines Go

async function start(module) {
  const go = new Go()
  const instance = await WebAssembly.instantiate(module, go.importObject)
  go.run(instance).then(() => postMessage({failed: 'tegen ended'}), (error) => postMessage({failed: String(error)}))
}

onmessage = async ({data}) => {
  try {
    if (data.module) {
      await start(data.module)
      postMessage({ready: true})
      return
    }
    const begin = performance.now()
    const result = JSON.parse(tegenEvaluate(data.job, data.environment, data.policy))
    postMessage({id: data.id, result, took: performance.now() - begin})
  } catch (error) {
    postMessage({failed: String(error)})
  }
}
