// A form for the properties of a JSON schema. Fields that are empty are not sent.
import type { ComponentChildren } from 'preact';
import { useId, useMemo, useState } from 'preact/hooks';
import { fieldsOf, readValue, typeText, writeValue, type Field, type Schema } from './schema';

export type Values = Record<string, unknown>;

interface SchemaFormProps {
  schema: Schema;
  /** The values at the beginning. */
  initial?: Values;
  onSubmit: (values: Values) => void;
  /** The buttons; the one that submits is among them. */
  children: ComponentChildren;
}

export function SchemaForm({ schema, initial = {}, onSubmit, children }: SchemaFormProps) {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(fields.map((field) => [field.name, writeValue(field, initial[field.name])])));
  const [faults, setFaults] = useState<Record<string, string>>({});
  const submit = (event: Event) => {
    event.preventDefault();
    const values: Values = {};
    const wrong: Record<string, string> = {};
    for (const field of fields) {
      try {
        const value = readValue(field, texts[field.name] ?? '');
        if (value !== undefined) values[field.name] = value;
      } catch (error) {
        wrong[field.name] = (error as Error).message;
      }
    }
    setFaults(wrong);
    if (Object.keys(wrong).length === 0) onSubmit(values);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return (
    <form class="schema-form" noValidate onSubmit={submit} onKeyDown={onKeyDown}>
      {fields.map((field) => (
        <FormField
          key={field.name}
          field={field}
          text={texts[field.name] ?? ''}
          fault={faults[field.name]}
          onChange={(text) => setTexts((earlier) => ({ ...earlier, [field.name]: text }))}
        />
      ))}
      {fields.length === 0 && <p class="muted">It has no parameters.</p>}
      <div class="toolbar">{children}</div>
    </form>
  );
}

interface FormFieldProps {
  field: Field;
  text: string;
  fault: string | undefined;
  onChange: (text: string) => void;
}

function FormField({ field, text, fault, onChange }: FormFieldProps) {
  const id = useId();
  const { name, schema, isRequired, control } = field;
  const details = [typeText(field), isRequired && 'required'].filter(Boolean).join(', ');
  const shared = { id, 'aria-describedby': `${id}-about`, 'aria-invalid': fault !== undefined, 'aria-required': isRequired };
  const initial = schema.default === undefined ? '' : `default: ${JSON.stringify(schema.default)}`;
  return (
    <div class="field">
      <label for={id}>
        <code>{name}</code> <span class="muted">{details}</span>
      </label>
      {control.kind === 'choice' ? (
        <select {...shared} value={text} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{initial || '–'}</option>
          {control.choices.map(({ title }, index) => (
            <option key={title} value={String(index)}>
              {title}
            </option>
          ))}
        </select>
      ) : control.kind === 'json' || (control.kind === 'text' && control.isLong) ? (
        <textarea {...shared} rows={control.kind === 'text' ? 4 : 1} placeholder={initial} spellcheck={false} value={text} onInput={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <input {...shared} inputMode={control.kind === 'number' ? 'decimal' : 'text'} placeholder={initial} spellcheck={false} autocomplete="off" value={text} onInput={(event) => onChange(event.currentTarget.value)} />
      )}
      <p id={`${id}-about`} class="about">
        {fault && <strong class="wrong-text">{fault} </strong>}
        {schema.title && schema.title !== name && `${schema.title}. `}
        {schema.description}
      </p>
    </div>
  );
}
