// The editors: CodeMirror with YAML or CUE, and with the findings at their places.
import {defaultKeymap, history, historyKeymap, indentWithTab} from '@codemirror/commands'
import {yaml} from '@codemirror/lang-yaml'
import {
  bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting,
} from '@codemirror/language'
import {lintGutter, lintKeymap, setDiagnostics} from '@codemirror/lint'
import {highlightSelectionMatches, search, searchKeymap} from '@codemirror/search'
import {EditorState} from '@codemirror/state'
import {
  drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers,
} from '@codemirror/view'
import {tags} from '@lezer/highlight'

const colours = HighlightStyle.define([
  {tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--key)'},
  {tag: [tags.string, tags.content], color: 'var(--text)'},
  {tag: [tags.quote, tags.special(tags.string)], color: 'var(--string)'},
  {tag: [tags.lineComment, tags.meta], color: 'var(--muted)'},
  {tag: [tags.keyword, tags.typeName, tags.labelName], color: 'var(--accent)'},
  {tag: [tags.punctuation, tags.separator, tags.brace, tags.squareBracket], color: 'var(--muted)'},
])

const all = [
  lineNumbers(), foldGutter(), search({top: true}), drawSelection(), bracketMatching(),
  syntaxHighlighting(colours), highlightSelectionMatches(), EditorState.tabSize.of(2),
]

// writable is an editor for one of the texts.
export function writable(parent, label, changed, language = yaml()) {
  return new EditorView({
    parent,
    extensions: [
      all, language, history(), indentOnInput(), indentUnit.of('  '), highlightActiveLine(), highlightActiveLineGutter(),
      lintGutter(), EditorView.lineWrapping, EditorView.contentAttributes.of({'aria-label': label}),
      keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap, indentWithTab]),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
    ],
  })
}

// readable shows YAML that can be searched and folded.
export function readable(parent, label) {
  return new EditorView({
    parent,
    extensions: [
      all, yaml(), EditorState.readOnly.of(true), EditorView.contentAttributes.of({'aria-label': label}),
      keymap.of([...defaultKeymap, ...searchKeymap, ...foldKeymap]),
    ],
  })
}

export function replace(view, text, extra = {}) {
  view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}, ...extra})
}

// place is where a finding is in a document: from its column, which counts characters, to the end of the word there.
export function place(doc, {line, column}) {
  if (!line || line > doc.lines) return {from: 0, to: 0}
  const {from, text} = doc.line(line)
  const before = Array.from(text).slice(0, (column || 1) - 1).join('').length
  const word = /^("[^"]*"?|'[^']*'?|[^\s,:[\]{}]+|.)/.exec(text.slice(before))
  return {from: from + before, to: from + before + (word ? word[0].length : 0)}
}

// mark shows findings at their places, each with its rule.
export function mark(view, findings) {
  view.dispatch(setDiagnostics(view.state, findings.map((finding) => ({
    ...place(view.state.doc, finding),
    severity: finding.level === 'error' ? 'error' : finding.level === 'warning' ? 'warning' : 'info',
    source: finding.rule,
    message: (finding.field ? `${finding.field}: ` : '') + finding.message +
      (finding.remedy ? `\n${finding.remedy}` : ''),
  })).sort((a, b) => a.from - b.from)))
}

// go shows a place and puts the cursor there.
export function go(view, at) {
  view.dispatch({selection: {anchor: at.from}, effects: EditorView.scrollIntoView(at.from, {y: 'center'})})
  view.focus()
}

// reveal shows the line at the top.
export function reveal(view, line) {
  const {from} = view.state.doc.line(Math.min(line, view.state.doc.lines))
  view.dispatch({selection: {anchor: from}, effects: EditorView.scrollIntoView(from, {y: 'start', yMargin: 8})})
}
