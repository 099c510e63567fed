// CUE's highlighting, of what policies are written in: names of fields, texts, comments, numbers and @message.
import {StreamLanguage} from '@codemirror/language'

const kinds = [
  ['lineComment', /^\/\/.*/],
  ['string.special', /^("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)(?!\s*[?!]?:)/],
  ['propertyName', /^(?:"(?:\\.|[^"\\])*"|[#\w$]+)(?=\s*[?!]?:)/],
  ['keyword', /^(?:@\w+|(?:package|import|true|false|null|_\|_)(?!\w))/],
  ['punctuation', /^[{}[\](),:?!]/],
  [null, /^(?:[#\w$.]+|\s+|.)/],
]

export const cue = StreamLanguage.define({
  name: 'cue',
  token: (stream) => kinds.find(([, pattern]) => stream.match(pattern))[0],
  languageData: {commentTokens: {line: '//'}},
})
