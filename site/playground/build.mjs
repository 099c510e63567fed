// Makes the page in site/public/playground, which the site serves as it is. make playground says where it has built
// tegen, TEGEN_WASM, and where the Go toolchain has its half of the bridge, GO_WASM_EXEC.
import {cpSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs'
import {fileURLToPath} from 'node:url'
import {gzipSync} from 'node:zlib'
import {build} from 'esbuild'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))
const out = fileURLToPath(new URL('../public/playground/', import.meta.url))
const chosen = JSON.parse(readFileSync(`${here}examples.json`, 'utf8'))

// examples are fixtures with a title, and some with an Environment or a policy, read when the page is made.
const read = (name) => name ? readFileSync(`${root}${name}`, 'utf8') : ''
const examples = {
  name: 'examples',
  setup(plugin) {
    plugin.onResolve({filter: /^examples$/}, () => ({path: 'examples', namespace: 'examples'}))
    plugin.onLoad({filter: /.*/, namespace: 'examples'}, () => ({
      loader: 'json',
      contents: JSON.stringify(Object.entries(chosen).map(([name, {title, environment, policy}]) => ({
        title, job: read(`fixtures/valid/${name}.yaml`), environment: read(environment), policy: read(policy),
      }))),
    }))
  },
}

mkdirSync(out, {recursive: true})
const shared = {bundle: true, minify: true, target: 'es2022', logLevel: 'warning', legalComments: 'linked'}
await build({...shared, entryPoints: [`${here}main.js`], outdir: out, format: 'esm', plugins: [examples]})
await build({
  ...shared, entryPoints: [`${here}worker.js`], outdir: out, format: 'iife',
  alias: {wasm_exec: process.env.GO_WASM_EXEC},
})
writeFileSync(`${out}tegen.wasm.gz`, gzipSync(readFileSync(process.env.TEGEN_WASM), {level: 9}))
for (const name of ['index.html', 'playground.css']) cpSync(`${here}${name}`, `${out}${name}`)
