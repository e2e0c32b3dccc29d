// Everything that a model can use here, and each entry to try.
import { useEffect, useState } from 'preact/hooks';
import { isAborted, key } from '../api/client';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { link, route } from '../route';
import { entries, KIND_TITLES, loadEntries, type Entry, type EntryKind } from './entries';
import { EntryPanel } from './entry_panel';

export function ToolsView() {
  const [error, setError] = useState<unknown>(null);
  const [words, setWords] = useState('');
  useEffect(() => {
    const controller = new AbortController();
    entries.value = null;
    setError(null);
    loadEntries(controller.signal).catch((refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, [key.value]);
  const [, kind, name] = route.value.path;
  const all = entries.value;
  if (error !== null) return <ProblemNote error={error} />;
  if (!all) return <Loading what="what a model can use" />;
  const chosen = all.find((entry) => entry.kind === kind && entry.name === name);
  const found = all.filter((entry) => isFound(entry, words));
  return (
    <div class={chosen ? 'view data' : 'view data list-only'}>
      <nav class="sidebar" aria-label="Entries">
        <label class="search">
          <span class="hidden">Search tools, prompts and resources</span>
          <Icon name="search" />
          <input type="search" placeholder="Search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        {(Object.keys(KIND_TITLES) as EntryKind[]).map((one) => (
          <EntryList key={one} kind={one} shown={found.filter((entry) => entry.kind === one)} chosen={chosen} />
        ))}
      </nav>
      <div class="data-main">
        {chosen ? (
          <EntryPanel key={`${kind}/${name}`} entry={chosen} />
        ) : (
          <>
            <h1>Tools</h1>
            <p class="muted">
              {name === undefined ? 'Choose a tool, a prompt or a resource: it is called as a model calls it.' : `There is no entry “${name}” that you may use.`}
            </p>
          </>
        )}
      </div>
    </div>
  );
}

function isFound({ name, title, description }: Entry, words: string): boolean {
  const text = `${name} ${title} ${description}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function EntryList({ kind, shown, chosen }: { kind: EntryKind; shown: Entry[]; chosen: Entry | undefined }) {
  if (shown.length === 0) return null;
  return (
    <details open>
      <summary>
        <span class="name">{KIND_TITLES[kind]}</span> <span class="muted">{shown.length}</span>
      </summary>
      <ul>
        {shown.map((entry) => (
          <li key={entry.name}>
            <a href={link(['tools', kind, entry.name])} aria-current={entry === chosen ? 'page' : undefined}>
              <span class="name">{entry.name}</span>
              {entry.title && entry.title !== entry.name && <span class="found muted">{entry.title}</span>}
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}
