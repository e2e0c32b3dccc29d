// The call behind a view, in the forms in which a program would send it. The key is never part of it.
import { useState } from 'preact/hooks';
import { base, callPath, key, type Call } from '../api/client';
import { CopyButton } from './copy';
import { Dialog } from './dialog';
import { Icon } from './icons';

export function CallButton({ call }: { call: Call | null }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="plain" disabled={!call} title="The call behind this view" onClick={() => setOpen(true)}>
        <Icon name="code" /> <span class="label">Call</span>
      </button>
      {isOpen && call && (
        <Dialog title="The call behind this view" onClose={() => setOpen(false)}>
          <CallForms call={call} />
        </Dialog>
      )}
    </>
  );
}

function CallForms({ call }: { call: Call }) {
  return (
    <>
      {FORMS.map(({ name, write }) => {
        const text = write(call);
        return (
          <section key={name} class="call-form">
            <header>
              <h3>{name}</h3>
              <CopyButton text={text} what={name} />
            </header>
            <pre tabIndex={0}>{text}</pre>
          </section>
        );
      })}
    </>
  );
}

const FORMS = [
  { name: 'REST', write: restForm },
  { name: 'curl', write: curlForm },
  { name: 'MCP', write: mcpForm },
];

function address(call: Call): string {
  return new URL(`${callPath(call.tool)}?format=json`, base).href;
}

function restForm(call: Call): string {
  return `POST ${address(call)}\nContent-Type: application/json\n\n${JSON.stringify(call.arguments, null, 2)}`;
}

export function curlForm(call: Call): string {
  const authorization = key.value ? ' -H "Authorization: Bearer $TIDEGATE_KEY"' : '';
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const body = quote(JSON.stringify(call.arguments));
  return `curl${authorization} -H 'Content-Type: application/json' \\\n  --data ${body} \\\n  ${quote(address(call))}`;
}

function mcpForm(call: Call): string {
  const parameters = { name: call.tool, arguments: call.arguments };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: parameters }, null, 2);
}
