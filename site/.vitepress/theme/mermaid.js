import url from '@mermaid-js/tiny/dist/mermaid.tiny.js?url'

let loaded

// load fetches Mermaid once, on the first page that has a picture of it: it is larger than the rest of the site.
export function load() {
  loaded ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = url
    script.onload = () => resolve(window.mermaid)
    script.onerror = () => reject(new Error(`${url} cannot be loaded`))
    document.head.append(script)
  })
  return loaded
}
