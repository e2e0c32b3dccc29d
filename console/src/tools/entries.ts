// What a model can use: tools, prompts and resources, each with the request that it needs.
import { signal } from '@preact/signals';
import { listAll } from '../api/mcp';
import type { Schema } from './schema';

export type EntryKind = 'tools' | 'prompts' | 'resources';

export interface Entry {
  kind: EntryKind;
  name: string;
  title: string;
  description: string;
  schema: Schema;
  /** Whether a call may change something. */
  changes: boolean;
  method: string;
  /** The parameters of the request for the values of the form. */
  parameters: (values: Record<string, unknown>) => Record<string, unknown>;
}

export const KIND_TITLES: Record<EntryKind, string> = { tools: 'Tools', prompts: 'Prompts', resources: 'Resources' };

export const entries = signal<Entry[] | null>(null);

interface ToolItem {
  name: string;
  title?: string;
  description?: string;
  inputSchema: Schema;
  annotations?: { readOnlyHint?: boolean };
}

interface PromptItem {
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
}

interface ResourceItem {
  uri?: string;
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
}

export async function loadEntries(signal: AbortSignal): Promise<void> {
  const tools = await listAll<ToolItem>('tools/list', 'tools', signal);
  const prompts = await listAll<PromptItem>('prompts/list', 'prompts', signal);
  const resources = await listAll<ResourceItem>('resources/list', 'resources', signal);
  const templates = await listAll<ResourceItem>('resources/templates/list', 'resourceTemplates', signal);
  entries.value = [...tools.map(ofTool), ...prompts.map(ofPrompt), ...resources.map(ofResource), ...templates.map(ofResource)];
}

function ofTool({ name, title = '', description = '', inputSchema, annotations }: ToolItem): Entry {
  return {
    kind: 'tools', name, title, description, schema: inputSchema, changes: annotations?.readOnlyHint !== true, method: 'tools/call',
    parameters: (values) => ({ name, arguments: values }),
  };
}

function ofPrompt({ name, title = '', description = '', arguments: parts = [] }: PromptItem): Entry {
  const properties = Object.fromEntries(parts.map((part) => [part.name, { type: 'string', title: part.title ?? part.name, description: part.description ?? '' }]));
  const required = parts.filter((part) => part.required).map((part) => part.name);
  return {
    kind: 'prompts', name, title, description, schema: { type: 'object', properties, required }, changes: false, method: 'prompts/get',
    parameters: (values) => ({ name, arguments: values }),
  };
}

/** A resource, or a template, whose variables are the fields. */
function ofResource({ uri, uriTemplate, name, title, description = '' }: ResourceItem): Entry {
  const address = uri ?? uriTemplate ?? '';
  const variables = uri === undefined ? [...address.matchAll(/\{([^}]+)\}/g)].map(([, variable]) => variable!) : [];
  const properties = Object.fromEntries(variables.map((variable) => [variable, { type: 'string' }]));
  return {
    kind: 'resources', name: address, title: title ?? name, description, schema: { type: 'object', properties, required: variables }, changes: false, method: 'resources/read',
    parameters: (values) => ({ uri: address.replace(/\{([^}]+)\}/g, (_, variable: string) => encodeURIComponent(String(values[variable]))) }),
  };
}
