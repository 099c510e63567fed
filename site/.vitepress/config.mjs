// The site is the repository's README and docs/, where they are. What only the site has is in this folder.
import {readFileSync, readdirSync} from 'node:fs'
import {fileURLToPath} from 'node:url'
import {slug} from 'github-slugger'
import {defineConfig} from 'vitepress'
import {links, pictures} from './markdown.mjs'
import {sidebar} from './sidebar.mjs'

const repository = 'https://github.com/tegen-dev/tegen'
const root = fileURLToPath(new URL('../..', import.meta.url))
const site = fileURLToPath(new URL('..', import.meta.url))
const docs = readdirSync(`${root}/docs`).filter((name) => name.endsWith('.md'))

// The page of the site that a file of the repository is: README.md is the first one, docs/README.md the contents.
const rewrite = (file) => ({'README.md': 'index.md', 'docs/README.md': 'contents.md'})[file] ?? file.replace('docs/', '')

const base = process.env.TEGEN_SITE_BASE || '/tegen/'

export default defineConfig({
  title: 'tegen',
  description: 'Kubernetes manifests of distributed training jobs, from one short file',
  lang: 'en',
  base,
  head: [['link', {rel: 'icon', type: 'image/svg+xml', href: `${base}logo.svg`}]],
  srcDir: root,
  srcExclude: ['!(README).md', '!(README.md|docs)/**', 'docs/*/**'],
  rewrites: rewrite,
  outDir: `${site}/dist`,
  cacheDir: `${site}/.vitepress/cache`,
  markdown: {
    anchor: {slugify: (text) => slug(text)}, // as on GitHub, where the same links are read
    config(md) {
      links(md, {root, repository, pages: ['README.md', ...docs.map((name) => `docs/${name}`)], rewrite})
      pictures(md)
    },
    theme: {light: 'github-light-high-contrast', dark: 'github-dark-default'},
  },
  vite: {
    publicDir: `${site}/public`,
    plugins: [{
      name: 'tegen-vue', // pages lie beside site/, and the Vue that they are compiled for lies in it
      enforce: 'pre',
      resolveId(id, _, options) {
        return /^vue(\/|$)/.test(id) ? this.resolve(id, `${site}/package.json`, {...options, skipSelf: true}) : null
      },
    }],
  },
  themeConfig: {
    logo: {src: '/logo.svg', alt: ''},
    search: {provider: 'local'},
    outline: [2, 3],
    socialLinks: [{icon: 'github', link: repository}],
    editLink: {pattern: `${repository}/edit/main/:path`, text: 'Edit this page on GitHub'},
    nav: [
      {text: 'Documentation', link: '/contents'},
      {text: 'Playground', link: '/playground/', target: '_self'}, // a page of its own, made by playground/build.mjs
      {text: 'Releases', link: `${repository}/releases`},
    ],
    sidebar: sidebar(readFileSync(`${root}/docs/README.md`, 'utf8')),
  },
})
