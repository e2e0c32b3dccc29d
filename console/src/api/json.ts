// Reads rows of JSON without loss.
//
// `JSON.parse` rounds integers beyond 2^53 and decimals with many digits, and moves members whose names are numbers to
// the front. A reader of data expects the digits and the order of the database. So a row is scanned here, and numbers
// and nested values stay text.

/** A number as the server wrote it, with all digits. */
export class NumberText {
  constructor(readonly text: string) {}
}

/** A nested object or array, as the server wrote it. */
export class JsonText {
  constructor(readonly text: string) {}
}

export type Cell = null | boolean | string | NumberText | JsonText;

export interface Row {
  names: string[];
  cells: Cell[];
}

/** The object in `line`, whose members are the columns of a row. */
export function parseRow(line: string): Row {
  const scanner = new Scanner(line);
  return scanner.row();
}

/** The rows of the array at the member `Query`, which begins the document. */
export function parseRows(document: string): Row[] {
  const scanner = new Scanner(document);
  scanner.skipTo('[');
  const rows: Row[] = [];
  while (scanner.hasItem(']')) rows.push(scanner.row());
  return rows;
}

/** The text of a cell for people. */
export function cellText(cell: Cell): string {
  if (cell === null) return 'NULL';
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'boolean') return String(cell);
  return cell.text;
}

class Scanner {
  private position = 0;

  constructor(private readonly text: string) {}

  row(): Row {
    this.skipTo('{');
    const row: Row = { names: [], cells: [] };
    while (this.hasItem('}')) {
      row.names.push(this.string());
      this.skipTo(':');
      row.cells.push(this.value());
    }
    return row;
  }

  skipTo(character: string): void {
    const found = this.text.indexOf(character, this.position);
    if (found < 0) throw new SyntaxError(`the answer is not JSON: "${character}" is missing`);
    this.position = found + 1;
  }

  /** Whether there is an item before `end`; skips the comma before it, or `end`. */
  hasItem(end: string): boolean {
    for (;;) {
      const character = this.text[this.position];
      if (character === undefined) throw new SyntaxError('the answer ends early');
      if (character !== ',' && !isSpace(character)) break;
      this.position += 1;
    }
    if (this.text[this.position] !== end) return true;
    this.position += 1;
    return false;
  }

  private value(): Cell {
    while (isSpace(this.text[this.position] ?? '')) this.position += 1;
    const first = this.text[this.position];
    if (first === '"') return this.string();
    if (first === '{' || first === '[') return new JsonText(this.nested());
    const start = this.position;
    while (this.position < this.text.length && !',}]'.includes(this.text[this.position]!)) this.position += 1;
    const word = this.text.slice(start, this.position).trim();
    if (word === 'null') return null;
    if (word === 'true' || word === 'false') return word === 'true';
    return new NumberText(word);
  }

  private string(): string {
    const start = this.text.indexOf('"', this.position);
    const end = this.endOfString(start);
    this.position = end + 1;
    const inner = this.text.slice(start + 1, end);
    return inner.includes('\\') ? (JSON.parse(this.text.slice(start, end + 1)) as string) : inner;
  }

  /** The position of the quote that ends the string at `start`. */
  private endOfString(start: number): number {
    for (let position = start + 1; position < this.text.length; position += 1) {
      const character = this.text[position];
      if (character === '\\') position += 1;
      else if (character === '"') return position;
    }
    throw new SyntaxError('the answer ends early');
  }

  private nested(): string {
    const start = this.position;
    let depth = 0;
    for (let position = start; position < this.text.length; position += 1) {
      const character = this.text[position];
      if (character === '"') position = this.endOfString(position);
      else if (character === '{' || character === '[') depth += 1;
      else if (character === '}' || character === ']') {
        depth -= 1;
        if (depth === 0) {
          this.position = position + 1;
          return this.text.slice(start, position + 1);
        }
      }
    }
    throw new SyntaxError('the answer ends early');
  }
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\r' || character === '\t';
}
