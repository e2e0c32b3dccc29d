// The times that a view reads: everything, the last minutes or hours, or from one time to another.
import { localTime } from '../format';
import { Icon } from './icons';

export interface TimeRange {
  /** As the tools take it: `-15m`, or a time. Empty for everything. */
  after: string;
  before: string;
}

const RANGES: Record<string, string> = { '': 'All times', '-15m': 'Last 15 minutes', '-1h': 'Last hour', '-6h': 'Last 6 hours', '-24h': 'Last 24 hours', '-7d': 'Last 7 days' };

export function TimeRangeField({ range, onChange }: { range: TimeRange; onChange: (range: TimeRange) => void }) {
  const isOwn = range.before !== '' || !Object.hasOwn(RANGES, range.after);
  return (
    <span class="inline-field">
      {isOwn ? (
        <span class="chip">
          {rangeText(range)}
          <button type="button" aria-label="All times" onClick={() => onChange({ after: '', before: '' })}>
            <Icon name="close" />
          </button>
        </span>
      ) : (
        <select aria-label="Time" value={range.after} onChange={(event) => onChange({ after: event.currentTarget.value, before: '' })}>
          {Object.entries(RANGES).map(([after, title]) => (
            <option key={after} value={after}>
              {title}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}

function rangeText({ after, before }: TimeRange): string {
  return [after && `from ${localTime(after)}`, before && `to ${localTime(before)}`].filter(Boolean).join(' ');
}

/** The arguments of a tool for the range. */
export function rangeArguments({ after, before }: TimeRange): Record<string, string> {
  return { ...(after && { after }), ...(before && { before }) };
}
