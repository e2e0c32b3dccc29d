// One value in full: JSON on several lines, and a time also in the viewer's time zone.
import type { ComponentChildren } from 'preact';
import { cellText, JsonText, type Cell } from '../api/json';
import { localTime } from '../format';
import { CopyButton } from './copy';
import { Dialog } from './dialog';

interface CellDialogProps {
  name: string;
  type: string;
  cell: Cell;
  onClose: () => void;
  /** What can be done with the row of the value. */
  children?: ComponentChildren;
}

export function CellDialog({ name, type, cell, onClose, children }: CellDialogProps) {
  const text = cell instanceof JsonText ? indented(cell.text) : cellText(cell);
  const isTime = typeof cell === 'string' && /^\d{4}-\d{2}-\d{2}T.*Z$/.test(cell);
  return (
    <Dialog title={name} onClose={onClose}>
      <div class="toolbar">
        <span class="muted">{type}</span>
        {isTime && <span>{localTime(text)} (local time)</span>}
        <span class="fill" />
        <CopyButton text={text} what="the value" />
      </div>
      <pre tabIndex={0} class={cell === null ? 'value null' : 'value'}>
        {text}
      </pre>
      {children && <div class="toolbar">{children}</div>}
    </Dialog>
  );
}

function indented(text: string): string {
  // Only the form changes: the digits of numbers stay, because the text is not parsed into numbers.
  let depth = 0;
  let result = '';
  for (let position = 0; position < text.length; position += 1) {
    const character = text[position]!;
    if (character === '"') {
      const start = position;
      position += 1;
      while (position < text.length && text[position] !== '"') position += text[position] === '\\' ? 2 : 1;
      result += text.slice(start, position + 1);
    } else if (character === '{' || character === '[') {
      depth += 1;
      result += `${character}\n${'  '.repeat(depth)}`;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      result += `\n${'  '.repeat(depth)}${character}`;
    } else if (character === ',') result += `,\n${'  '.repeat(depth)}`;
    else if (character === ':') result += ': ';
    else if (!/\s/.test(character)) result += character;
  }
  return result;
}
