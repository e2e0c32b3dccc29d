// The fields of a form from a JSON schema, and the values that their texts mean.

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  enumNames?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  const?: unknown;
  default?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  minimum?: number;
  maximum?: number;
  format?: string;
}

export type Control =
  | { kind: 'choice'; choices: { value: unknown; title: string }[] }
  | { kind: 'number'; isWhole: boolean }
  | { kind: 'text'; isLong: boolean }
  /** Text is JSON; where a plain text is possible too, what is not JSON is taken as it is. */
  | { kind: 'json'; takesText: boolean };

export interface Field {
  name: string;
  schema: Schema;
  isRequired: boolean;
  control: Control;
}

export function fieldsOf(schema: Schema): Field[] {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    return { name, schema: property, isRequired: required.has(name), control: controlOf(name, property) };
  });
  // What must be there comes first.
  return fields.sort((one, other) => Number(other.isRequired) - Number(one.isRequired));
}

function controlOf(name: string, schema: Schema): Control {
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  if (schema.enum) {
    return { kind: 'choice', choices: schema.enum.map((value, index) => ({ value, title: schema.enumNames?.[index] ?? String(value) })) };
  }
  if (schema.oneOf?.every((one) => one.const !== undefined)) {
    return { kind: 'choice', choices: schema.oneOf.map((one) => ({ value: one.const, title: one.title ?? String(one.const) })) };
  }
  if (types.length === 1) {
    if (types[0] === 'boolean') return { kind: 'choice', choices: [{ value: true, title: 'true' }, { value: false, title: 'false' }] };
    if (types[0] === 'integer' || types[0] === 'number') return { kind: 'number', isWhole: types[0] === 'integer' };
    if (types[0] === 'string') return { kind: 'text', isLong: /^(sql|statement|body|text)$/.test(name) };
  }
  const parts = schema.anyOf ?? [];
  return { kind: 'json', takesText: types.includes('string') || parts.some(({ type }) => type === 'string') };
}

/** The value that a text means; an empty one means none. Throws what is wrong with it. */
export function readValue({ schema, control, isRequired }: Field, text: string): unknown {
  if (text === '' || (text.trim() === '' && control.kind !== 'text')) {
    if (isRequired) throw new Error('A value is needed.');
    return undefined;
  }
  if (control.kind === 'choice') return control.choices[Number(text)]?.value;
  if (control.kind === 'text') return text;
  if (control.kind === 'number') return readNumber(text.trim(), control.isWhole, schema);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (control.takesText && !/^\s*[[{"]/.test(text)) return text;
    if (schema.type === 'array' && !/^\s*\[/.test(text)) return text.split('\n').map((line) => line.trim()).filter(Boolean);
    throw new Error(`This is not JSON: ${(error as Error).message}`);
  }
}

function readNumber(text: string, isWhole: boolean, { minimum, maximum }: Schema): number {
  const value = Number(text);
  if (!Number.isFinite(value) || (isWhole && !Number.isInteger(value))) throw new Error(isWhole ? 'A whole number is needed.' : 'A number is needed.');
  if (minimum !== undefined && value < minimum) throw new Error(`The smallest value is ${minimum}.`);
  if (maximum !== undefined && value > maximum) throw new Error(`The largest value is ${maximum}.`);
  return value;
}

/** The text of a value in its field. */
export function writeValue({ control }: Field, value: unknown): string {
  if (value === undefined) return '';
  if (control.kind === 'choice') {
    const index = control.choices.findIndex((choice) => choice.value === value);
    return index < 0 ? '' : String(index);
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What a field takes, in a few words. */
export function typeText({ schema, control }: Field): string {
  if (control.kind === 'json') return schema.type === 'array' ? 'JSON array, or one a line' : control.takesText ? 'text or JSON' : 'JSON';
  if (control.kind === 'choice') return '';
  const { minimum, maximum } = schema;
  const range = minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : minimum !== undefined ? `from ${minimum}` : maximum !== undefined ? `up to ${maximum}` : '';
  return [control.kind === 'number' ? (control.isWhole ? 'integer' : 'number') : (schema.format ?? 'text'), range].filter(Boolean).join(', ');
}
