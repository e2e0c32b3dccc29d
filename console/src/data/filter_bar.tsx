// The conditions on the rows: each can be removed, and further ones are added by a form or by a click on a value.
import { useState } from 'preact/hooks';
import type { Column } from '../api/catalog';
import { Icon } from '../parts/icons';
import { hasValue, OPERATORS, operatorWords, type Filter, type Operator } from './filters';

interface FilterBarProps {
  columns: Column[];
  filters: Filter[];
  onChange: (filters: Filter[]) => void;
}

export function FilterBar({ columns, filters, onChange }: FilterBarProps) {
  const [isAdding, setAdding] = useState(false);
  return (
    <div class="filters">
      {filters.map((filter, index) => (
        <span key={index} class="chip">
          <span class="mono">{filter.column}</span> {operatorWords(filter.operator)} {hasValue(filter.operator) && <span class="mono">{filter.value}</span>}
          <button type="button" aria-label={`Remove the condition on ${filter.column}`} onClick={() => onChange(filters.filter((_, other) => other !== index))}>
            <Icon name="close" />
          </button>
        </span>
      ))}
      {isAdding ? (
        <FilterForm
          columns={columns}
          onCancel={() => setAdding(false)}
          onAdd={(filter) => {
            setAdding(false);
            onChange([...filters, filter]);
          }}
        />
      ) : (
        <button type="button" class="small" onClick={() => setAdding(true)}>
          <Icon name="filter" /> Add a condition
        </button>
      )}
    </div>
  );
}

interface FilterFormProps {
  columns: Column[];
  onAdd: (filter: Filter) => void;
  onCancel: () => void;
}

function FilterForm({ columns, onAdd, onCancel }: FilterFormProps) {
  const [operator, setOperator] = useState<Operator>('=');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    onAdd({ column: String(fields.get('column')), operator, value: String(fields.get('value') ?? '') });
  };
  return (
    <form class="filter-form" onSubmit={submit} onKeyDown={(event) => event.key === 'Escape' && onCancel()}>
      <select name="column" aria-label="Column" autofocus>
        {columns.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Comparison" value={operator} onChange={(event) => setOperator(event.currentTarget.value as Operator)}>
        {OPERATORS.map((name) => (
          <option key={name} value={name}>
            {operatorWords(name)}
          </option>
        ))}
      </select>
      {hasValue(operator) && <input name="value" aria-label="Value" spellcheck={false} />}
      <button type="submit" class="small primary">
        Add
      </button>
      <button type="button" class="small" onClick={onCancel}>
        Cancel
      </button>
    </form>
  );
}
