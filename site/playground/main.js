import examples from 'examples'
import {cue} from './cue.js'
import {go, mark, place, readable, replace, reveal, writable} from './editor.js'
import {engine} from './engine.js'
import {draw} from './graph.js'
import {fragment, textsOf} from './share.js'
import {tabs} from './tabs.js'

const pause = 150 // milliseconds without a key before what is written is rendered
const most = 1 << 21 // letters of objects that are shown; all are copied
const mostFindings = 200

const $ = (id) => document.getElementById(id)

const editors = {
  job: writable($('job'), 'job.yaml', changed),
  environment: writable($('environment'), 'environment.yaml', changed),
  policy: writable($('policy'), 'policy.cue', changed, cue),
}
const objects = readable($('objects'), 'Objects')
const picked = {left: tabs($('tab-job').parentElement), right: tabs($('tab-objects').parentElement, viewed)}
const tegen = engine({show, fail: (why) => say(`tegen cannot run here: ${why}`, 'error')})
let shown = null, began = performance.now(), timer = 0, broken = ''

function say(text, level = '') {
  $('status').textContent = text
  $('status').className = level
}

const texts = () => Object.fromEntries(Object.entries(editors).map(([name, {state}]) => [name, state.doc.toString()]))

function changed() {
  clearTimeout(timer)
  timer = setTimeout(render, pause)
}

function render() {
  clearTimeout(timer)
  tegen.render(texts())
}

function open(example) {
  for (const [name, view] of Object.entries(editors)) replace(view, example[name])
  picked.left.choose('job')
  render()
}

function show(result, took) {
  const errors = result.findings.filter((finding) => finding.level === 'error')
  list(result.findings)
  $('stale').hidden = !errors.length || !shown
  document.body.classList.toggle('stale', errors.length > 0)
  if (errors.length) {
    say(errors.length === 1 ? '1 mistake' : `${errors.length} mistakes`, 'error')
  } else {
    const count = outline(result.objects)
    say(`${count} ${count === 1 ? 'object' : 'objects'} in ${Math.max(1, Math.round(took))} ms`, 'good')
    shown = result
    replace(objects, result.objects.length <= most ? result.objects :
      `${result.objects.slice(0, result.objects.lastIndexOf('\n', most))}\n# … and more: "Copy" has all of it.\n`)
    $('plan').firstElementChild.textContent = result.plan ?? ''
    draw($('graph'), result)
  }
  if (broken) say(broken, 'error')
  broken = ''
  if (began !== null) {
    document.body.dataset.first = Math.round(performance.now() - began) // which the tests report
    began = null
  }
}

// A finding's editor has the name of its file, less the extension.
const editorOf = ({file}) => (file || 'job.yaml').replace(/\.\w+$/, '')

// list shows every finding, at its place and below the editor.
function list(findings) {
  for (const [name, view] of Object.entries(editors)) {
    const own = findings.filter((finding) => editorOf(finding) === name)
    mark(view, own.slice(0, mostFindings))
    $(`tab-${name}`).classList.toggle('wrong', own.some(({level}) => level === 'error'))
  }
  $('findings').replaceChildren(...findings.slice(0, mostFindings).map(item), ...(findings.length > mostFindings
    ? [Object.assign(document.createElement('p'), {textContent: `and ${findings.length - mostFindings} more`})] : []))
}

function item(finding) {
  const button = document.createElement('button')
  button.className = `finding ${finding.level}`
  const part = (kind, text) => {
    if (!text) return
    button.append(Object.assign(document.createElement('span'), {className: kind, textContent: text}), ' ')
  }
  const name = editorOf(finding)
  part('at', finding.line ? `${finding.line}:${finding.column}` : '')
  part('field', finding.field)
  part('message', finding.message)
  part('rule', finding.rule)
  part('remedy', finding.remedy)
  button.onclick = () => {
    picked.left.choose(name)
    go(editors[name], place(editors[name].state.doc, finding))
  }
  return button
}

// outline lists the objects by kind and name, and counts them.
function outline(yaml) {
  const found = []
  let kind = null
  yaml.slice(0, most).split('\n').forEach((line, index) => {
    if (line.startsWith('kind: ')) kind = {line: index + 1, text: line.slice(6)}
    else if (kind && line.startsWith('  name: ')) {
      found.push({...kind, text: `${kind.text} ${line.slice(8)}`})
      kind = null
    }
  })
  $('outline').replaceChildren(new Option('Go to …', ''), ...found.map(({text, line}) => new Option(text, line)))
  return yaml.length <= most ? found.length : yaml.split(/^kind: /m).length - 1
}

function viewed(name) {
  $('outline-label').hidden = name !== 'objects'
  if (name === 'objects') objects.requestMeasure()
}

$('outline').onchange = ({target}) => {
  if (target.value) reveal(objects, Number(target.value))
  target.selectedIndex = 0
}

$('example').append(...examples.map(({title}, index) => new Option(title, index)))
$('example').insertBefore(new Option('Shared job', 'shared', false, false), null).hidden = true
$('example').onchange = ({target}) => {
  history.replaceState(null, '', location.pathname)
  open(examples[target.value])
}

const flash = (button, text) => {
  const before = button.dataset.text ??= button.textContent
  button.textContent = text
  setTimeout(() => { button.textContent = before }, 2000)
}

const copy = (text, button, done) => navigator.clipboard.writeText(text)
  .then(() => flash(button, done), () => flash(button, 'Not allowed'))

$('share').onclick = async () => {
  try {
    history.replaceState(null, '', `#${await fragment(texts())}`)
    await copy(location.href, $('share'), 'Link copied')
  } catch (error) {
    say(`no link: ${error.message}`, 'error')
  }
}

$('copy').onclick = () => {
  const of = {objects: shown?.objects, plan: shown?.plan, graph: shown?.graph}
  copy(of[picked.right.chosen()] ?? '', $('copy'), 'Copied')
}

// The appearance is the site's: what a reader chose there holds here.
const dark = matchMedia('(prefers-color-scheme: dark)')
const stored = 'vitepress-theme-appearance'
function appear() {
  const own = localStorage.getItem(stored)
  const is = own === 'dark' || own !== 'light' && dark.matches
  document.documentElement.classList.toggle('dark', is)
  if (shown) draw($('graph'), shown)
  return is
}
dark.onchange = appear
$('appearance').onclick = () => {
  localStorage.setItem(stored, document.documentElement.classList.contains('dark') ? 'light' : 'dark')
  appear()
}

async function start() {
  let shared = null
  try {
    shared = await textsOf(location.hash)
  } catch (error) {
    broken = `the link is broken: ${error.message}` // said when the example in its place is rendered
  }
  $('example').value = shared ? 'shared' : '0'
  open(shared ?? examples[0])
}

window.onhashchange = start
appear()
viewed('objects')
start()
