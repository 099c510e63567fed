// contrasts runs in the page: the contrast of every colour of text with what is behind it, as WCAG 2.2 reckons it, and
// what its level AA wants. Each pair of colours of a kind of element is told once.
export function contrasts() {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const known = new Map()
  const rgba = (colour) => { // whatever notation it is in
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
      known.set(colour, [r, g, b, a / 255])
    }
    return known.get(colour)
  }
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1]
  const backs = new Map([[null, [255, 255, 255, 1]]])
  const behind = (element) => {
    if (!backs.has(element)) {
      const own = rgba(getComputedStyle(element).backgroundColor)
      backs.set(element, own[3] === 1 ? own : over(own, behind(element.parentElement)))
    }
    return backs.get(element)
  }
  const luminance = (colour) => colour.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0)

  const found = new Map()
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement
    if (!texts.currentNode.data.trim() || !element.checkVisibility({opacityProperty: true, visibilityProperty: true}) ||
      /^(SCRIPT|STYLE|NOSCRIPT)$/.test(element.tagName) || element.closest('svg, .visually-hidden')) continue
    const style = getComputedStyle(element)
    const back = behind(element), text = over(rgba(style.color), back)
    const [light, dark] = [luminance(text), luminance(back)].sort((a, b) => b - a)
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700
    const of = element.closest('pre, code, a, button, blockquote, nav, footer')?.tagName.toLowerCase() ?? 'text'
    const one = {
      of, text: `rgb(${text.slice(0, 3).map(Math.round)})`, back: `rgb(${back.slice(0, 3).map(Math.round)})`,
      ratio: Math.round((light + 0.05) / (dark + 0.05) * 100) / 100, wanted: large ? 3 : 4.5,
      sample: texts.currentNode.data.trim().slice(0, 40),
    }
    found.set(`${of} ${one.text} ${one.back} ${large}`, one)
  }
  return [...found.values()]
}
