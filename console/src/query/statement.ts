// What the console must know of SQL as text: where a statement ends, which parameters it has, and where a name is. The
// server parses statements; here, strings and comments are only skipped.

export interface Span {
  from: number;
  to: number;
}

const SKIPPED = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|\$([A-Za-z_]\w*)?\$[\s\S]*?(?:\$\1\$|$)/g;
const QUOTED_NAMES = /"(?:[^"]|"")*(?:"|$)/g;

/** The text with blanks in place of comments and strings, and of quoted names unless `keepsNames`. */
export function blank(sql: string, keepsNames = false): string {
  const blanks = (text: string) => text.replace(/[^\n]/g, ' ');
  // Strings, comments and names are found in one pass, because each may contain the marks of the others.
  const pattern = new RegExp(`${SKIPPED.source}|${QUOTED_NAMES.source}`, 'g');
  return sql.replace(pattern, (text) => (keepsNames && text.startsWith('"') ? text : blanks(text)));
}

/** The statement at `position`, without the semicolons around it and the space. */
export function statementAt(sql: string, position: number): Span {
  const code = blank(sql);
  let from = code.lastIndexOf(';', position - 1) + 1;
  let to = code.indexOf(';', Math.max(position, from));
  if (to < 0) to = sql.length;
  if (code.slice(from, to).trim() === '' && from > 0) {
    // Behind the last semicolon, people mean the statement before it.
    to = from - 1;
    from = code.lastIndexOf(';', to - 1) + 1;
  }
  while (from < to && /\s/.test(sql[from]!)) from += 1;
  while (to > from && /\s/.test(sql[to - 1]!)) to -= 1;
  return { from, to };
}

/** The number of parameters: of `$1`, `$2`, … the highest, or of `?` how many. */
export function countParameters(sql: string): number {
  const code = blank(sql);
  const numbers = [...code.matchAll(/\$(\d+)/g)].map(([, digits]) => Number(digits));
  if (numbers.length > 0) return Math.min(Math.max(...numbers), PARAMETERS_MAX);
  return Math.min([...code.matchAll(/(?<![?|&@#])\?(?![?|&#])/g)].length, PARAMETERS_MAX);
}

const PARAMETERS_MAX = 50;

/** The value of a parameter as it is entered: a number, true, false and null are what they look like, else it is text. */
export function parameterValue(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === 'null' || trimmed === 'true' || trimmed === 'false') return JSON.parse(trimmed);
  if (/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) {
    const number = Number(trimmed);
    // The server reads numbers in text exactly.
    return String(number) === trimmed ? number : trimmed;
  }
  const quoted = /^"(.*)"$/s.exec(trimmed);
  return quoted ? quoted[1] : text;
}

/** A name as SQL writes it: with quotes if it needs them. */
export function quoteName(name: string): string {
  const isPlain = /^[a-z_][a-z0-9_]*$/.test(name) && !RESERVED.has(name);
  return isPlain ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Words that PostgreSQL or SQLite reserves. */
const RESERVED = new Set(
  ('all analyse analyze and any array as asc asymmetric between both by case cast check collate collation column commit '
    + 'concurrently constraint create cross current_catalog current_date current_role current_schema current_time '
    + 'current_timestamp current_user default deferrable delete desc distinct do drop else end escape except exists false fetch '
    + 'for foreign freeze from full grant group having ilike in index initially inner insert intersect into is isnull join '
    + 'lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer '
    + 'overlaps placing primary references returning right select session_user set similar some symmetric table tablesample '
    + 'then to trailing transaction true union unique update user using values variadic verbose when where window with').split(' '),
);

/** Where a statement has the mistake that `message` describes. */
export function locateMistake(sql: string, message: string): Span | null {
  const at = /line (\d+), column (\d+)/.exec(message);
  if (at) return wordAt(sql, offsetOf(sql, Number(at[1]), Number(at[2])));
  for (const [, name] of message.matchAll(/"((?:[^"\\]|\\.)+)"|`([^`]+)`|'([^']+)'/g)) {
    const found = name && findName(sql, name);
    if (found) return found;
  }
  const called = /\b(?:function|operator|type) ([A-Za-z_]\w*)/.exec(message)?.[1];
  return called ? findName(sql, called) : null;
}

function offsetOf(sql: string, line: number, column: number): number {
  const lines = sql.split('\n');
  const before = lines.slice(0, line - 1).reduce((length, text) => length + text.length + 1, 0);
  return Math.min(before + column - 1, sql.length);
}

function wordAt(sql: string, offset: number): Span {
  // A mistake at the end is that of the last word.
  let from = offset;
  while (from >= sql.length || (from > 0 && /\s/.test(sql[from] ?? ' '))) {
    if (from === 0) return { from: 0, to: sql.length };
    from -= 1;
  }
  if (/\w/.test(sql[from]!)) while (from > 0 && /\w/.test(sql[from - 1]!)) from -= 1;
  const word = /^(?:\w+|"(?:[^"]|"")*"|.)/s.exec(sql.slice(from))?.[0] ?? '';
  return { from, to: Math.min(from + Math.max(word.length, 1), sql.length) };
}

function findName(sql: string, name: string): Span | null {
  const code = blank(sql, true);
  const last = name.split('.').pop()!;
  for (const wanted of [name, last]) {
    const escaped = wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const found = new RegExp(`(?<![\\w$])"?${escaped}"?(?![\\w$])`, 'i').exec(code);
    if (found) return { from: found.index, to: found.index + found[0].length };
  }
  return null;
}
