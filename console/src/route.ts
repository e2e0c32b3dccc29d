// The state of a view as an address that can be sent: `#/data/DATABASE/TABLE?order=-delay`.
//
// It is behind the `#`, so it is never sent to a server: statements and values do not appear in the logs of proxies.
import { signal } from '@preact/signals';

export interface Route {
  /** The decoded segments of the path; the first one is the view. */
  path: string[];
  parameters: URLSearchParams;
}

export const route = signal<Route>(parse(location.hash));

window.addEventListener('hashchange', () => {
  route.value = parse(location.hash);
});

function parse(hash: string): Route {
  const [path = '', query = ''] = splitOnce(hash.replace(/^#\/?/, ''), '?');
  const segments = path.split('/').filter((segment) => segment !== '');
  return { path: segments.map(decode), parameters: new URLSearchParams(query) };
}

function splitOnce(text: string, separator: string): string[] {
  const position = text.indexOf(separator);
  return position < 0 ? [text] : [text.slice(0, position), text.slice(position + separator.length)];
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The address of a view within the page. */
export function link(path: string[], parameters: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export function go(path: string[], parameters: Record<string, string | undefined> = {}): void {
  location.hash = link(path, parameters);
}

/** Changes the address of the current view without a new entry in the history of the browser. */
export function replace(path: string[], parameters: Record<string, string | undefined> = {}): void {
  history.replaceState(null, '', link(path, parameters));
  route.value = parse(location.hash);
}
