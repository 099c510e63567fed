// draw puts the picture into a shadow of its own. Its style is taken out and adopted, since the page's rules let no
// document bring one along; and it follows the page's appearance, not the system's.
export function draw(panel, {graph, noGraph}) {
  const root = panel.shadowRoot ?? panel.attachShadow({mode: 'open'})
  if (!graph) {
    root.replaceChildren(Object.assign(document.createElement('p'), {textContent: noGraph ?? ''}))
    return
  }
  const svg = new DOMParser().parseFromString(graph, 'image/svg+xml').documentElement
  const style = svg.querySelector('style')
  style.remove()
  const [, , width] = svg.getAttribute('viewBox').split(' ')
  svg.style.width = `clamp(${Math.round(width * 0.65)}px, 100% - 16px, ${width}px)`
  const dark = document.documentElement.classList.contains('dark')
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(`:host { display: block; } svg { display: block; margin: 8px; } p { padding: 0 16px; }
    ${style.textContent.replaceAll('(prefers-color-scheme: dark)', dark ? 'all' : 'not all')}`)
  root.adoptedStyleSheets = [sheet]
  root.replaceChildren(document.importNode(svg, true))
}
