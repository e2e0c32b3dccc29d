// The editor, which is loaded when the view opens for the first time.
//
// It is in a shadow root: there, CodeMirror adds its styles as constructed style sheets, which the server's
// Content-Security-Policy permits, and not as style elements.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionSource } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { keywordCompletionSource, PostgreSQL, schemaCompletionSource, SQLite, sql, type SQLDialect, type SQLNamespace } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintKeymap, setDiagnostics, setDiagnosticsEffect, type Diagnostic } from '@codemirror/lint';
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import FUNCTIONS from 'virtual:functions';
import { quoteName, statementAt, type Span } from './statement';

export interface SchemaColumn {
  name: string;
  type: string;
  comment: string | null;
}

export interface SchemaTable {
  name: string;
  comment: string | null;
  columns: SchemaColumn[];
}

export interface Mistake extends Span {
  message: string;
  hint: string | undefined;
  choices: string[];
}

export interface EditorOptions {
  text: string;
  onChange: (text: string) => void;
  onRun: () => void;
  /** The tables of the database, with the columns of those that `text` names. */
  readSchema: (text: string) => Promise<SchemaTable[]>;
}

export interface Editor {
  text(): string;
  setText(text: string): void;
  /** The selection, or the statement at the cursor. */
  chosen(): Span;
  setDialect(dialect: string): void;
  setMistake(mistake: Mistake | null): void;
  /** Replaces the marked mistake by a name. */
  correct(name: string): void;
  focus(): void;
  destroy(): void;
}

const CHOICES_MAX = 5;

export function createEditor(root: ShadowRoot, parent: HTMLElement, options: EditorOptions): Editor {
  const language = new Compartment();
  let mistake: Mistake | null = null;
  const run = () => {
    options.onRun();
    return true;
  };
  const view = new EditorView({
    root,
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        autocompletion({ icons: false }),
        // The mark is that of the statement that was run, so a change of the text removes it.
        EditorState.transactionExtender.of((change) => (change.docChanged && mistake ? { effects: setDiagnosticsEffect.of([]) } : null)),
        keymap.of([
          ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap,
          { key: 'Tab', run: acceptCompletion },
        ]),
        placeholder('SELECT …'),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'SQL statement' }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          mistake = null;
          options.onChange(update.state.doc.toString());
        }),
        syntaxHighlighting(COLOURS),
        THEME,
        language.of(languageOf(PostgreSQL, options.readSchema)),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
    },
    chosen() {
      const { from, to, empty } = view.state.selection.main;
      return empty ? statementAt(view.state.doc.toString(), from) : { from, to };
    },
    setDialect(dialect) {
      const spoken = /sqlite/i.test(dialect) ? SQLite : PostgreSQL;
      view.dispatch({ effects: language.reconfigure(languageOf(spoken, options.readSchema)) });
    },
    setMistake(found) {
      mistake = found;
      view.dispatch(setDiagnostics(view.state, found ? [diagnosticOf(found)] : []));
      if (found) view.dispatch({ effects: EditorView.scrollIntoView(found.from) });
    },
    correct(name) {
      if (!mistake) return;
      const { from, to } = mistake;
      view.dispatch({ changes: { from, to, insert: quoteName(name) }, selection: { anchor: from + quoteName(name).length } });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function languageOf(dialect: SQLDialect, readSchema: EditorOptions['readSchema']): Extension {
  // SQLite has other functions.
  const functions = dialect === SQLite ? [] : FUNCTIONS.map((name) => ({ label: name, detail: 'function', apply: `${name}(`, boost: -1 }));
  const words = dialect.language.data;
  const ofSchema: CompletionSource = async (context) => {
    const tables = await readSchema(context.state.doc.toString());
    return context.aborted ? null : schemaCompletionSource({ dialect, schema: schemaOf(tables) })(context);
  };
  const ofColumns: CompletionSource = async (context) => {
    const tables = await readSchema(context.state.doc.toString());
    return context.aborted ? null : withoutTable(columnsOf(tables))(context);
  };
  return [
    sql({ dialect }),
    words.of({ autocomplete: ofSchema }),
    words.of({ autocomplete: ofColumns }),
    words.of({ autocomplete: withoutTable(functions) }),
    words.of({ autocomplete: keywordCompletionSource(dialect, true) }),
  ];
}

function schemaOf(tables: SchemaTable[]): SQLNamespace {
  return Object.fromEntries(tables.map((table) => [table.name.replaceAll('.', '\\.'), {
    self: completion(table.name, 'table', table.comment),
    children: table.columns.map((column) => completion(column.name, column.type, column.comment)),
  }]));
}

/** The columns of the tables that the statement names. */
function columnsOf(tables: SchemaTable[]): Completion[] {
  const options = tables.flatMap(({ columns }) => columns.map(({ name, type, comment }) => ({ ...completion(name, type, comment), boost: 2 })));
  return [...new Map(options.map((option) => [option.label, option])).values()];
}

/** Completes words that have neither a table before them nor a quote. */
function withoutTable(options: Completion[]): CompletionSource {
  return (context) => {
    const word = context.matchBefore(/\w+/);
    if (!word || /[."]/.test(context.state.sliceDoc(word.from - 1, word.from))) return null;
    return { from: word.from, options, validFor: /^\w*$/ };
  };
}

function completion(name: string, detail: string, comment: string | null): Completion {
  const shown: Completion = { label: name, detail, apply: quoteName(name) };
  if (comment) shown.info = comment;
  return shown;
}

function diagnosticOf({ from, to, message, hint, choices }: Mistake): Diagnostic {
  return {
    from,
    to,
    severity: 'error',
    message: hint ? `${message}\n${hint}` : message,
    actions: choices.slice(0, CHOICES_MAX).map((choice) => ({
      name: choice,
      apply(view, start, end) {
        view.dispatch({ changes: { from: start, to: end, insert: quoteName(choice) } });
        view.focus();
      },
    })),
  };
}

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: 'var(--code-keyword)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: tags.typeName, color: 'var(--code-type)' },
]);

const THEME = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '13.5px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--row-active)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selection)' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line-strong)', borderRadius: '6px',
    boxShadow: 'var(--shadow)', overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '13px', maxHeight: '14em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px', display: 'flex', gap: '16px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionLabel': { flex: '1' },
  '.cm-completionDetail': { color: 'var(--muted)', fontStyle: 'normal', marginLeft: '0' },
  'li[aria-selected] .cm-completionDetail': { color: 'var(--on-accent)' },
  '.cm-completionInfo': { padding: '6px 10px', maxWidth: '24em' },
  '.cm-diagnostic': { padding: '6px 10px', whiteSpace: 'pre-wrap', borderLeft: '3px solid var(--bad)' },
  '.cm-diagnosticText': { display: 'block' },
  '.cm-diagnosticAction': {
    font: 'inherit', fontFamily: 'var(--mono)', fontSize: '12.5px', color: 'var(--on-accent)', backgroundColor: 'var(--accent)',
    border: 'none', borderRadius: '4px', padding: '2px 8px', margin: '6px 6px 0 0', cursor: 'pointer',
  },
  '.cm-lintRange-error': {
    backgroundImage: 'none', textDecoration: 'underline wavy var(--bad) 1.5px', textUnderlineOffset: '4px',
  },
});
