// The statements that were run before in this browser.
import { count, localTime, milliseconds } from '../format';
import { clearHistory, history, type HistoryItem } from './history';

export function HistoryList({ onChoose }: { onChoose: (item: HistoryItem) => void }) {
  const items = history.value;
  if (items.length === 0) return <p class="muted empty">No statement was run in this browser yet.</p>;
  return (
    <div class="history">
      <div class="toolbar">
        <span class="muted">Kept in this browser only.</span>
        <span class="fill" />
        <button type="button" class="small" onClick={clearHistory}>
          Clear the history
        </button>
      </div>
      <ul>
        {items.map((item) => (
          <li key={item.at}>
            <button type="button" onClick={() => onChoose(item)}>
              <code>{item.sql}</code>
              <span class="muted">
                {item.database} · {localTime(new Date(item.at).toISOString())} ·{' '}
                {item.state === 'done' ? `${count(item.rows)} rows · ${milliseconds(item.milliseconds)}` : item.state}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
