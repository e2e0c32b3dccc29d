// All rows of an answer as a file.
import { useState } from 'preact/hooks';
import { callPath, base, request } from '../api/client';
import { readManifest, type Answer } from '../api/rows';
import { download } from '../parts/download';
import { Icon } from '../parts/icons';
import { Menu } from '../parts/menu';
import { ProblemNote } from '../parts/problem';
import { statementCall, type Statement } from './run';

const FORMATS = [
  { name: 'csv', title: 'CSV' },
  { name: 'json', title: 'JSON' },
  { name: 'ndjson', title: 'JSON, one object a line' },
  { name: 'parquet', title: 'Parquet' },
  { name: 'arrow', title: 'Arrow stream' },
];

export function ExportMenu({ statement, answer }: { statement: Statement; answer: Answer }) {
  const [error, setError] = useState<unknown>(null);
  const save = async (format: string) => {
    setError(null);
    try {
      if (answer.kind === 'stored') await saveStored(answer, format);
      else await saveAnswer(statement, format);
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <>
      <Menu
        label={
          <>
            <Icon name="save" /> <span class="label">Export</span>
          </>
        }
      >
        {FORMATS.map(({ name, title }) => (
          <button key={name} type="button" onClick={() => void save(name)}>
            {title}
          </button>
        ))}
      </Menu>
      {error !== null && <ProblemNote error={error} />}
    </>
  );
}

/** Downloads a stored result by a link, which the browser streams to its file: rows are not in the memory of the page. */
async function saveStored(answer: Extract<Answer, { kind: 'stored' }>, format: string): Promise<void> {
  const manifest = await readManifest(answer.source.manifest.peek().id);
  if (!manifest.links) return;
  const address = new URL(manifest.links.data.replace(/^\//, ''), base);
  address.searchParams.set('format', format);
  if (manifest.status === 'incomplete') address.searchParams.set('partial', 'true');
  const anchor = document.createElement('a');
  anchor.href = address.href;
  anchor.download = '';
  anchor.rel = 'noreferrer';
  anchor.click();
}

async function saveAnswer(statement: Statement, format: string): Promise<void> {
  const { tool, arguments: args } = statementCall(statement);
  const response = await request(`${callPath(tool)}?format=${format}`, {
    method: 'POST', body: { ...args, max_rows: Number.MAX_SAFE_INTEGER }, accept: '*/*',
  });
  download(await response.blob(), `rows.${format}`);
}
