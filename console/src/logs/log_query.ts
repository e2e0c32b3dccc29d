// What the view of logs shows, as parameters of its address.

export interface LogQuery {
  source: string;
  words: string;
  after: string;
  before: string;
  /** Values that a field may have. */
  selections: Record<string, string[]>;
  /** Whether new entries appear as they come. */
  follows: boolean;
}

export function readLogQuery(parameters: URLSearchParams, source: string): LogQuery {
  const text = (name: string) => parameters.get(name) ?? '';
  return { source: text('source') || source, words: text('query'), after: text('after'), before: text('before'), selections: readSelections(text('selections')), follows: text('follow') !== '' };
}

function readSelections(text: string): Record<string, string[]> {
  try {
    const entries = Object.entries(JSON.parse(text || '{}') as Record<string, unknown>);
    return Object.fromEntries(entries.filter((entry): entry is [string, string[]] => Array.isArray(entry[1])));
  } catch {
    return {};
  }
}

export function writeLogQuery({ source, words, after, before, selections, follows }: LogQuery): Record<string, string | undefined> {
  const chosen = Object.keys(selections).length > 0 ? JSON.stringify(selections) : undefined;
  return { source, query: words || undefined, after: after || undefined, before: before || undefined, selections: chosen, follow: follows ? 'yes' : undefined };
}
