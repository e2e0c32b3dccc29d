// The answer to a call as a model receives it, with what it costs.
import type { Exchange } from '../api/mcp';
import { bytes, count, milliseconds } from '../format';
import { CopyButton } from '../parts/copy';
import { ProblemNote } from '../parts/problem';

interface ContentItem {
  type?: string;
  role?: string;
  text?: string;
  data?: string;
  blob?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  resource?: ContentItem;
}

/** A part of an answer: a text, or a line about what is no text. */
interface Part {
  title: string;
  text: string | null;
}

export function Answer({ exchange }: { exchange: Exchange }) {
  const { result, error } = exchange.reply;
  if (error) return <ProblemNote error={new Error(error.message)} />;
  const parts = readParts(result ?? {});
  const text = parts.map((part) => part.text ?? '').join('\n');
  const isError = result?.isError === true;
  return (
    <div class="answer">
      <p class="answer-facts">
        <strong class={isError ? 'wrong-text' : undefined}>{isError ? 'The tool reports an error' : 'Answer'}</strong>{' '}
        <span class="muted">
          about {count(estimateTokens(text))} tokens · {bytes(new TextEncoder().encode(text).length)} · {milliseconds(exchange.milliseconds)}
        </span>
        <span class="fill" />
        <CopyButton text={text} what="the answer" />
      </p>
      {parts.map((part, index) => (
        <section key={index}>
          {part.title && <h3>{part.title}</h3>}
          {part.text !== null && <pre tabIndex={0}>{part.text}</pre>}
        </section>
      ))}
      {result?.structuredContent !== undefined && (
        <details>
          <summary>Structured content, for programs</summary>
          <pre tabIndex={0}>{JSON.stringify(result.structuredContent, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

function readParts(result: Record<string, unknown>): Part[] {
  const { content, messages, contents } = result as { content?: ContentItem[]; messages?: { role: string; content: ContentItem | ContentItem[] }[]; contents?: ContentItem[] };
  const ofMessages = (messages ?? []).flatMap(({ role, content: items }) => [items].flat().map((item) => ({ ...readPart(item), title: `From the ${role}` })));
  return [...(content ?? []).map(readPart), ...ofMessages, ...(contents ?? []).map(readPart)];
}

function readPart(item: ContentItem): Part {
  const { type, text, mimeType, uri, resource } = item;
  if (resource) return readPart(resource);
  if (type === 'resource_link') return { title: `Link to a resource: ${item.name ?? ''}`, text: uri ?? '' };
  if (text !== undefined) return { title: mimeType ?? '', text };
  const size = Math.floor(((item.data ?? item.blob ?? '').length * 3) / 4);
  return { title: `${mimeType ?? type ?? 'Unknown content'}, ${bytes(size)}`, text: null };
}

/** Pieces as tokenizers of models cut them: short words with the space before them, three digits, marks that stand together. */
const PIECES = / ?\p{Lu}?\p{Ll}{1,7}| ?\p{L}{1,3}|\d{1,3}| ?[^\s\p{L}\d]{1,3}|\s+/gu;

export function estimateTokens(text: string): number {
  return text.match(PIECES)?.length ?? 0;
}
