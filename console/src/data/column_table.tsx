// The columns of a table with types, keys, comments and example values.
import type { Column } from '../api/catalog';

export function ColumnTable({ columns }: { columns: Column[] }) {
  const hasComments = columns.some(({ comment }) => comment);
  return (
    <div class="table-box fill-box" tabIndex={0} role="region" aria-label="Columns">
      <table class="columns">
        <thead>
          <tr>
            <th>Column</th>
            <th>Type</th>
            {hasComments && <th>Comment</th>}
            <th>Examples</th>
          </tr>
        </thead>
        <tbody>
          {columns.map((column) => (
            <tr key={column.name}>
              <td class="mono">{column.name}</td>
              <td class="nowrap">
                {column.type}
                {column.nullable === false && <span class="muted"> not null</span>}
              </td>
              {hasComments && <td>{column.comment}</td>}
              <td class="examples">
                {column.samples?.map((sample, index) => (
                  <code key={index}>{sample}</code>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
