// What GitHub makes of the Markdown by itself and the site's generator does not.
import {statSync} from 'node:fs'
import {posix} from 'node:path'

// links: they are relative, as GitHub reads them; those to pages of the site lead there, and all others into the
// repository. One to a file that does not exist is an error, which ends the build.
export function links(md, {root, repository, pages, rewrite}) {
  const resolve = (href, from) => {
    if (/^([a-z]+:|\/\/|#)/i.test(href)) return href
    const [path, hash = ''] = href.split(/(?=#)/, 2)
    const file = posix.normalize(posix.join(posix.dirname(from), decodeURI(path))).replace(/\/$/, '')
    if (pages.includes(file)) return `/${rewrite(file)}${hash}`
    const found = file.startsWith('..') ? undefined : statSync(`${root}/${file}`, {throwIfNoEntry: false})
    if (!found) throw new Error(`${from} links to ${href}, which does not exist: mend the link`)
    return `${repository}/${found.isDirectory() ? 'tree' : 'blob'}/main/${file}${hash}`
  }
  md.core.ruler.push('tegen_links', ({tokens, env}) => {
    const from = posix.relative(root, env.realPath ?? env.path)
    for (const token of tokens.flatMap((block) => block.children ?? [])) {
      if (token.type === 'link_open') token.attrSet('href', resolve(token.attrGet('href'), from))
    }
  })
}

// pictures: a block of Mermaid is drawn.
export function pictures(md) {
  const {fence} = md.renderer.rules
  md.renderer.rules.fence = (tokens, i, ...rest) => tokens[i].info.trim() === 'mermaid'
    ? `<Mermaid source="${md.utils.escapeHtml(tokens[i].content)}" />`
    : fence(tokens, i, ...rest)
}
