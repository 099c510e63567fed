// tabs makes a list of tabs choose among their panels, by pointer or by arrow keys.
export function tabs(list, changed = () => {}) {
  const all = [...list.querySelectorAll('[role=tab]')]
  const name = (tab) => tab.getAttribute('aria-controls')
  const choose = (chosen) => {
    for (const tab of all) {
      const is = name(tab) === chosen
      tab.setAttribute('aria-selected', is)
      tab.tabIndex = is ? 0 : -1
      document.getElementById(name(tab)).hidden = !is
    }
    changed(chosen)
  }
  all.forEach((tab, index) => {
    tab.onclick = () => choose(name(tab))
    tab.onkeydown = ({key}) => {
      const step = {ArrowRight: 1, ArrowLeft: all.length - 1}[key]
      if (!step) return
      const next = all[(index + step) % all.length]
      choose(name(next))
      next.focus()
    }
  })
  return {choose, chosen: () => name(all.find((tab) => tab.getAttribute('aria-selected') === 'true'))}
}
