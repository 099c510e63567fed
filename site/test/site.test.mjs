// What a reader meets: every page of the site, in a real browser.
import assert from 'node:assert/strict'
import {readdirSync} from 'node:fs'
import {after, before, test} from 'node:test'
import {contrasts} from './contrast.mjs'
import {desktop, phone, shot, start} from './browser.mjs'

const pages = readdirSync(new URL('../dist', import.meta.url))
  .filter((name) => name.endsWith('.html') && name !== '404.html').map((name) => name.replace(/^index.html$/, ''))
const shots = ['', 'start.html', 'graph.html', 'reference.html', 'contents.html', 'plan.html']

let site
before(async () => { site = await start() })
after(() => site?.close())

const name = (path) => path.replace('.html', '') || 'index'

// Every page is opened once, and looked at in light, in dark and on a telephone.
test('every page', async (t) => {
  const tab = await site.tab(), {page} = tab
  const ids = new Map([[site.url('playground/'), new Set()]]), links = [], faint = new Map(), wide = []
  const read = async (path, appearance) => {
    for (const one of await page.evaluate(contrasts)) {
      if (one.ratio < one.wanted) faint.set(`${one.of} ${one.text} on ${one.back}`, {path, ...one})
    }
    if (shots.includes(path)) await shot(page, `${name(path)}-${appearance}`)
  }
  for (const path of pages) {
    await page.setViewportSize(desktop)
    await page.emulateMedia({colorScheme: 'light'})
    await tab.open(site.url(path))
    assert.match(await page.title(), /tegen/, path)
    assert.deepEqual(await page.$$eval('.vp-doc img', (all) => all.filter((img) => !img.naturalWidth || !img.alt)
      .map((img) => img.src)), [], `images of ${path} that are broken, or say nothing to who cannot see them`)
    ids.set(site.url(path), new Set(await page.$$eval('[id]', (all) => all.map((one) => one.id))))
    links.push(...(await page.$$eval('a[href]', (all) => all.map((a) => a.href))).map((href) => ({path, href})))
    await read(path, 'light')
    await page.emulateMedia({colorScheme: 'dark'})
    await page.waitForFunction(() => document.documentElement.classList.contains('dark'))
    await read(path, 'dark')
    await page.setViewportSize(phone)
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    if (width > phone.width) wide.push({path, width})
    if (shots.includes(path)) await shot(page, `${name(path)}-phone`)
  }
  await tab.close()

  await t.test('opens without an error, and asks no other host', () => assert.deepEqual(tab.faults, []))
  await t.test('links to pages and anchors that exist', () => {
    assert.deepEqual(links.filter(({href}) => !/^https?:/.test(href)), [])
    assert.deepEqual(links.filter(({href}) => href.startsWith(site.origin)).filter(({href}) => {
      const [target, id] = href.split('#', 2)
      return !ids.has(target) || id && !ids.get(target).has(decodeURIComponent(id))
    }), [])
  })
  await t.test('is readable in light and dark', () => assert.deepEqual([...faint.values()], []))
  await t.test('does not scroll sideways on a telephone', () => assert.deepEqual(wide, []))
})

test('the appearance is switched, and stays', async () => {
  const {page, faults, open, close} = await site.tab()
  await open(site.url())
  const dark = () => page.evaluate(() => document.documentElement.classList.contains('dark'))
  assert.equal(await dark(), false)
  await page.locator('.VPNavBarAppearance .VPSwitchAppearance').click()
  assert.equal(await dark(), true)
  await open(site.url('start.html'))
  assert.equal(await dark(), true)
  assert.deepEqual(faults, [])
  await close()
})

for (const [words, wanted, dark] of [['rendezvous', 'rendezvous.html', false], ['suspend', 'suspend.html', true]]) {
  test(`search finds ${words}`, async () => {
    const {page, faults, open, close} = await site.tab({dark})
    await open(site.url('start.html'))
    await page.keyboard.press('Control+k')
    await page.locator('#localsearch-input').fill(words)
    const result = page.locator(`.VPLocalSearchBox .result[href*="${wanted}"]`).first()
    await result.waitFor()
    await shot(page, `search-${words}`)
    assert.deepEqual((await page.evaluate(contrasts)).filter(({ratio, wanted}) => ratio < wanted), [])
    await result.click()
    await page.waitForURL((url) => url.pathname.endsWith(wanted))
    await page.locator('.vp-doc', {hasText: new RegExp(words, 'i')}).waitFor()
    assert.deepEqual(faults, [])
    await close()
  })
}

test('search says so where it finds nothing', async () => {
  const {page, open, close} = await site.tab()
  await open(site.url())
  await page.keyboard.press('Control+k')
  await page.locator('#localsearch-input').fill('xyzzyplugh')
  await page.locator('.VPLocalSearchBox .no-results').waitFor()
  await close()
})

test('on a telephone the menu leads to other pages', async () => {
  const {page, faults, open, close} = await site.tab({viewport: phone, dark: true})
  await open(site.url())
  await page.locator('.VPLocalNav .menu').click()
  const link = page.locator('.VPSidebar.open a[href$="suspend.html"]')
  await link.waitFor()
  await shot(page, 'menu-phone')
  await link.click()
  await page.waitForURL((url) => url.pathname.endsWith('suspend.html'))
  await page.locator('.VPSidebar.open').waitFor({state: 'detached'})
  await page.locator('.VPNavBarHamburger').click()
  await page.locator('.VPNavScreen').waitFor()
  await page.locator('.VPNavScreen .VPSwitchAppearance').click()
  assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark')), false)
  assert.deepEqual(faults, [])
  await close()
})
