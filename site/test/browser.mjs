// The built site on a free port, and a real browser that looks at it. Tests of every page of the site start here.
import {mkdirSync} from 'node:fs'
import {createServer} from 'node:http'
import {fileURLToPath} from 'node:url'
import {chromium} from 'playwright-core'
import sirv from 'sirv'

const site = fileURLToPath(new URL('..', import.meta.url))
const base = process.env.TEGEN_SITE_BASE || '/tegen/'

export const phone = {width: 390, height: 844}
export const desktop = {width: 1280, height: 800}

// start serves site/dist and starts the browser that TEGEN_BROWSER names, which site/setup.sh finds.
export async function start() {
  if (!process.env.TEGEN_BROWSER) throw new Error('TEGEN_BROWSER is unset: run "make site-test", or name a Chromium')
  const files = sirv(`${site}/dist`)
  const server = createServer((request, answer) => {
    const missing = () => answer.writeHead(404).end()
    if (!request.url.startsWith(base)) return missing()
    // A folder is its index.html, though a page of the same name be beside it: playground.html is one of docs.
    request.url = request.url.slice(base.length - 1).replace(/\/(?=\?|$)/, '/index.html')
    files(request, answer, missing)
  })
  await new Promise((resolve, reject) => server.on('error', reject).listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${server.address().port}`
  const browser = await chromium.launch({
    executablePath: process.env.TEGEN_BROWSER,
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [], // which root has none of
  })
  return {
    origin,
    url: (path = '') => `${origin}${base}${path}`,
    tab: (options) => tab(browser, origin, options),
    async close() {
      await browser.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

// tab is a page in a window of its own: nothing is remembered of others. Its faults are what a reader would not see and
// a maintainer must: errors in the console, answers that are none, and requests to any other host, which are refused.
async function tab(browser, origin, {dark = false, viewport = desktop, permissions} = {}) {
  const context = await browser.newContext({colorScheme: dark ? 'dark' : 'light', viewport, permissions})
  const faults = []
  await context.route((url) => url.origin !== origin, (route) => {
    faults.push(`asks another host: ${route.request().url()}`)
    return route.abort()
  })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error}`))
  page.on('response', (answer) => answer.status() >= 400 && faults.push(`${answer.status()}: ${answer.url()}`))
  return {
    page, context, faults,
    // open is over when the page answers to a reader, and its pictures are drawn.
    async open(url) {
      await page.goto(url)
      await page.waitForFunction(() => document.querySelector('#app')?.__vue_app__ &&
        !document.querySelector('.mermaid:not(:has(svg))'))
    },
    close: () => context.close(),
  }
}

// shot keeps what the page looks like in site/shots, for eyes.
export async function shot(page, name, options) {
  mkdirSync(`${site}/shots`, {recursive: true})
  await page.screenshot({path: `${site}/shots/${name}.png`, animations: 'disabled', ...options})
}
