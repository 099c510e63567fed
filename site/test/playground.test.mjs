// The playground: a job is typed in a real browser, and its objects or its mistakes are looked at.
import assert from 'node:assert/strict'
import {readFileSync, statSync} from 'node:fs'
import {after, before, test} from 'node:test'
import {deflateRawSync} from 'node:zlib'
import {phone, shot, start} from './browser.mjs'

const megabyte = 1 << 20
const root = new URL('../../', import.meta.url)
const file = (name) => new URL(`../dist/playground/${name}`, import.meta.url)
const fixture = (name) => readFileSync(new URL(`fixtures/valid/${name}.yaml`, root), 'utf8')
const golden = (name) => readFileSync(new URL(`golden/${name}/base.yaml`, root), 'utf8')

let site
before(async () => { site = await start() })
after(() => site?.close())

const job = '#job .cm-content', status = '#status'
const rules = 'pod: spec: hostNetwork?: false @message("Grüße 😀")\n'

// open is over when the first job is rendered.
async function open(tab, hash = '') {
  await tab.page.goto(site.url(`playground/${hash}`))
  await rendered(tab.page)
}

const rendered = (page, text = /objects? in|mistake/) =>
  page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector('#status').textContent),
    [text.source])

// write pastes a text into an editor in the place of what it has.
async function write(page, text, editor = job) {
  await page.evaluate((words) => { document.querySelector('#status').textContent = words }, 'waiting')
  await page.locator(editor).click()
  await page.keyboard.press('Control+a')
  await page.locator(editor).evaluate((element, words) => {
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', words)
    element.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}))
  }, text)
}

// What an editor holds, whatever of it is on the screen.
const held = (page, editor) => page.evaluate((selector) =>
  document.querySelector(selector).cmTile.view.state.doc.toString(), editor)

test('a job is rendered as the command renders it, and nothing else is asked', async () => {
  const tab = await site.tab({permissions: ['clipboard-read', 'clipboard-write']}), {page} = tab
  await open(tab)
  await page.locator('#copy').click()
  await page.getByText('Copied').waitFor()
  // The golden file is of a build without a version.
  const text = await page.evaluate(() => navigator.clipboard.readText())
  assert.equal(text.replace(/(tegen\.dev\/version: )v.*/g, '$1(devel)'), golden('minimal'))
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('a mistake is marked at its line, with what to write, until it is mended', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  await write(page, fixture('minimal').replace('min: 1, max: 3', 'min: 3, max: 1'))
  await rendered(page, /1 mistake/)
  const line = fixture('minimal').split('\n').findIndex((text) => text.includes('workers:')) + 1
  const finding = page.locator('.finding.error')
  assert.match(await finding.textContent(), new RegExp(`^${line}:\\d+ spec\\.workers\\.\\w+ .*(below|above)`))
  assert.match(await page.locator('.cm-line', {has: page.locator('.cm-lintRange-error')}).textContent(), /workers:/)
  await page.locator('.cm-lintRange-error').first().hover()
  await page.locator('.cm-tooltip .cm-diagnostic').waitFor()
  assert.match(await page.locator('.cm-tooltip .cm-diagnostic').textContent(), /spec\.workers.*Change one/s)
  assert.match(await finding.locator('.rule').textContent(), /^job\/order$/)
  assert.match(await finding.locator('.remedy').textContent(), /^Change one/)
  assert.equal(await page.locator('#stale').isVisible(), true)
  await shot(page, 'playground-mistake')
  await finding.click()
  assert.equal(await page.evaluate(() => document.activeElement.closest('#job') !== null), true)
  await write(page, fixture('minimal').replace('max: 3', 'max: 4'))
  await rendered(page, /objects in/)
  assert.equal(await page.locator('.finding.error').count(), 0)
  assert.equal(await page.locator('#stale').isVisible(), false)
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('every example has objects and a graph, and no mistake', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  const all = await page.locator('#example option:not([hidden])').evaluateAll((list) => list.map(({value}) => value))
  assert.ok(all.length >= 12, `${all.length} examples`)
  await page.locator('#tab-graph').click()
  for (const one of all) {
    await page.evaluate(() => { document.querySelector('#status').textContent = 'waiting' })
    await page.locator('#example').selectOption(one)
    await rendered(page)
    assert.match(await page.locator(status).textContent(), /^\d+ objects? in/, `example ${one}`)
    assert.ok(await page.locator('#graph rect').count() > 2, `example ${one}`)
  }
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('a link to a job opens it in a fresh page', async () => {
  const tab = await site.tab({permissions: ['clipboard-read', 'clipboard-write']}), {page} = tab
  await open(tab)
  const text = fixture('minimal').replace('resnet', 'zürich-😀').replace('name: zürich-😀', 'name: shared')
  await write(page, `# Grüße 😀\n${text}`)
  await rendered(page)
  const environment = `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: e}
spec: {namespace: mine}
`
  await page.locator('#tab-environment').click()
  await write(page, environment, '#environment .cm-content')
  await rendered(page)
  await page.locator('#tab-policy').click()
  await write(page, rules, '#policy .cm-content')
  await rendered(page)
  await page.locator('#share').click()
  await page.getByText('Link copied').waitFor()
  const link = await page.evaluate(() => navigator.clipboard.readText())
  await tab.close()
  const fresh = await site.tab()
  await fresh.page.goto(link)
  await rendered(fresh.page)
  assert.equal(await held(fresh.page, job), `# Grüße 😀\n${text}`)
  assert.equal(await held(fresh.page, '#environment .cm-content'), environment)
  assert.equal(await held(fresh.page, '#policy .cm-content'), rules)
  assert.equal(await fresh.page.locator('#example').inputValue(), 'shared')
  assert.deepEqual([...tab.faults, ...fresh.faults], [])
  await fresh.close()
})

test('a link from before there were policies opens its two texts', async () => {
  const tab = await site.tab(), {page} = tab
  const texts = [fixture('suspend-job'), '']
  await open(tab, `#v1.${deflateRawSync(JSON.stringify(texts)).toString('base64url')}`)
  assert.deepEqual([await held(page, job), await held(page, '#environment .cm-content')], texts)
  assert.equal(await held(page, '#policy .cm-content'), '')
  assert.match(await page.locator(status).textContent(), /objects in/)
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('a broken link says so and opens the first example', async () => {
  const tab = await site.tab(), {page} = tab
  for (const hash of ['#v1.AAAA', '#v1.%%', '#v1.']) {
    await page.goto('about:blank')
    await page.goto(site.url(`playground/${hash}`))
    await rendered(page, /^the link is broken: /)
    assert.match(await page.locator('.cm-content').first().textContent(), /TrainingJob/, hash)
  }
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('an Environment changes the job, and its mistakes are marked in it', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  await page.locator('#tab-environment').click()
  const head = 'apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: here}\nspec:\n'
  await write(page, `${head}  images: [{from: ghcr.io/, to: registry.example/}]\n`, '#environment .cm-content')
  await rendered(page, /objects in/)
  assert.match(await held(page, '#objects .cm-content'), /image: registry\.example\/acme\/resnet/)
  await write(page, `${head}  spot: maybe\n`, '#environment .cm-content')
  await rendered(page, /mistake/)
  assert.equal(await page.locator('#tab-environment.wrong').count(), 1)
  assert.equal(await page.locator('#tab-job.wrong').count(), 0)
  assert.match(await page.locator('#environment .cm-line', {has: page.locator('.cm-lintRange-error')}).textContent(),
    /spot/)
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

for (const [name, options] of [['desktop', {}], ['phone', {viewport: phone, dark: true}]]) {
  test(`a violation of a policy is marked in the job, and a mistake of the policy in it, on a ${name}`, async () => {
    const tab = await site.tab(options), {page} = tab
    await open(tab)
    await page.locator('#example').selectOption({label: 'Under a policy'})
    await rendered(page, /objects? in/)
    const text = fixture('network').replace('podTemplate:\n', 'podTemplate:\n    spec: {hostNetwork: true}\n')
    await write(page, text)
    await rendered(page, /1 mistake/)
    assert.match(await page.locator('#job .cm-line', {has: page.locator('.cm-lintRange-error')}).textContent(),
      /hostNetwork: true/)
    assert.match(await page.locator('.finding.error').textContent(), /no host network: ask #platform \(policy\.cue:9:/)
    assert.equal(await page.locator('.tabs .wrong').getAttribute('id'), 'tab-job')
    await page.locator('#tab-job').focus()
    await page.keyboard.press('ArrowLeft')
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-policy')
    assert.ok(await page.locator('#tab-policy').evaluate((tab) => tab.getBoundingClientRect().right <= innerWidth))
    assert.ok(await page.locator('#policy .cm-line span').count() > 10, 'CUE has no colours')
    await shot(page, `playground-policy-${name}`)
    await write(page, 'pod: spec: hostNetwrk?: false\n', '#policy .cm-content')
    await rendered(page, /1 mistake/)
    assert.match(await page.locator('#policy .cm-line', {has: page.locator('.cm-lintRange-error')}).textContent(),
      /hostNetwrk/)
    assert.equal(await page.locator('.tabs .wrong').getAttribute('id'), 'tab-policy')
    await page.locator('#tab-job').click()
    await page.locator('.finding.error').click()
    assert.equal(await page.evaluate(() => document.activeElement.closest('#policy') !== null), true)
    await write(page, '', '#policy .cm-content')
    await rendered(page, /objects? in/)
    assert.deepEqual(tab.faults, [])
    await tab.close()
  })
}

test('a fence of an Environment is shown in the job', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  await page.locator('#tab-environment').click()
  await write(page, 'apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: lab}\n' +
    'spec: {namespace: training, fence: true}\n', '#environment .cm-content')
  await rendered(page, /objects? in/)
  await page.locator('#tab-job').click()
  await write(page, `${fixture('minimal')}  podTemplate: {spec: {hostPID: true}}\n`)
  await rendered(page, /1 mistake/)
  assert.match(await page.locator('#job .cm-line', {has: page.locator('.cm-lintRange-error')}).textContent(), /hostPID/)
  assert.match(await page.locator('.finding.error').textContent(), /not allowed: processes of the node/)
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('the page stays awake under a huge job, and shows the newest', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  const many = Array.from({length: 3000}, (_, index) => fixture('minimal').replace('resnet', `job-${index}`))
  await write(page, many.join('---\n'))
  const slowest = await page.evaluate(async () => {
    let slowest = 0
    for (let at = performance.now(), end = at + 1500; at < end;) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      slowest = Math.max(slowest, performance.now() - at)
      at = performance.now()
    }
    return slowest
  })
  assert.ok(slowest < 1000, `the page stood still for ${slowest} ms`)
  await write(page, fixture('minimal').replace('resnet', 'newest'))
  await rendered(page, /^\d objects? in/)
  assert.match(await held(page, '#objects .cm-content'), /name: newest/)
  assert.deepEqual(tab.faults, [])
  await tab.close()
})

test('neither the page nor its worker can ask another host', async () => {
  const tab = await site.tab(), {page} = tab
  await open(tab)
  const ask = () => fetch('https://example.org/').then(() => 'asked', () => 'refused')
  assert.equal(await page.evaluate(ask), 'refused')
  assert.equal(await page.workers()[0].evaluate(ask), 'refused')
  const refusals = tab.faults.filter((fault) => /Content Security Policy/.test(fault))
  assert.ok(refusals.length >= 2, tab.faults.join('\n'))
  assert.deepEqual(tab.faults.filter((fault) => /asks another host/.test(fault)), [], 'the rules let it pass')
  await tab.close()
})

for (const [name, options] of [['light', {}], ['dark', {dark: true}], ['phone', {viewport: phone}]]) {
  test(`it is readable in ${name}`, async () => {
    const tab = await site.tab(options), {page} = tab
    await open(tab)
    await page.locator('#example').selectOption('1')
    await rendered(page)
    await shot(page, `playground-${name}`)
    await page.locator('#tab-graph').click()
    await shot(page, `playground-${name}-graph`)
    await page.locator('#tab-plan').click()
    assert.match(await page.locator('#plan').textContent(), /imagenet-worker-\{1\.\.2\}/)
    await shot(page, `playground-${name}-plan`)
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= page.viewportSize().width)
    assert.deepEqual(tab.faults, [])
    await tab.close()
  })
}

test('it is small', async (t) => {
  const size = statSync(file('tegen.wasm.gz')).size
  t.diagnostic(`tegen.wasm.gz has ${(size / megabyte).toFixed(2)} MiB`)
  assert.ok(size <= 7e6, `${size} bytes`)
  const tab = await site.tab()
  await open(tab)
  await tab.page.reload()
  await rendered(tab.page)
  t.diagnostic(`first result of a warm load after ${await tab.page.evaluate(() => document.body.dataset.first)} ms`)
  await tab.close()
})
