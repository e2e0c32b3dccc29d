// One entry: its form, what the server needs before it answers, the answer and the messages.
import { useState } from 'preact/hooks';
import type { Exchange } from '../api/mcp';
import { CopyButton } from '../parts/copy';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { Tabs } from '../parts/tabs';
import { replace, route } from '../route';
import { Answer } from './answer';
import { useConversation, type Conversation, type InputRequest, type InputResponse } from './conversation';
import type { Entry } from './entries';
import { SchemaForm, type Values } from './schema_form';

const TABS = { answer: 'Answer', messages: 'Messages' };
const SEND_WORDS = { tools: 'Call', prompts: 'Get', resources: 'Read' };

export function EntryPanel({ entry }: { entry: Entry }) {
  const conversation = useConversation(entry);
  const [tab, setTab] = useState<keyof typeof TABS>('answer');
  const [initial] = useState(() => readArguments(route.value.parameters.get('arguments')));
  const submit = (values: Values) => {
    const text = JSON.stringify(values);
    replace(['tools', entry.kind, entry.name], { arguments: text === '{}' ? undefined : text });
    setTab('answer');
    conversation.start(values);
  };
  return (
    <>
      <div class="view-head">
        <a class="back" href="#/tools" aria-label="All entries">
          <Icon name="back" />
        </a>
        <h1 class="table-name">{entry.name}</h1>
        {entry.title !== entry.name && <span class="muted">{entry.title}</span>}
      </div>
      {entry.description && <p class="comment description">{entry.description}</p>}
      {entry.changes && <p class="note">This tool may change something.</p>}
      <SchemaForm schema={entry.schema} initial={initial} onSubmit={submit}>
        {conversation.isRunning ? (
          <button type="button" class="primary" onClick={conversation.cancel}>
            <Icon name="stop" /> Cancel
          </button>
        ) : (
          <button type="submit" class="primary">
            <Icon name="run" /> {SEND_WORDS[entry.kind]}
          </button>
        )}
      </SchemaForm>
      {(conversation.exchanges.length > 0 || conversation.isRunning || conversation.error !== null) && (
        <>
          <div class="tabs">
            <Tabs label="Answer and messages" names={TABS} chosen={tab} onChoose={setTab} />
          </div>
          {tab === 'answer' ? <Outcome conversation={conversation} /> : <Messages exchanges={conversation.exchanges} />}
        </>
      )}
    </>
  );
}

/** The values in the address, which fill the form and are not sent on their own. */
function readArguments(text: string | null): Values {
  try {
    const values = JSON.parse(text ?? '{}') as unknown;
    return typeof values === 'object' && values !== null && !Array.isArray(values) ? (values as Values) : {};
  } catch {
    return {};
  }
}

function Outcome({ conversation }: { conversation: Conversation }) {
  const { exchanges, isRunning, error, requests } = conversation;
  const last = exchanges[exchanges.length - 1];
  if (error !== null) return <ProblemNote error={error} />;
  if (isRunning) return <Loading what="the answer" />;
  if (requests.length > 0) return <InputForms key={exchanges.length} requests={requests} onRespond={conversation.respond} />;
  return last ? <Answer exchange={last} /> : null;
}

interface InputFormsProps {
  requests: [string, InputRequest][];
  onRespond: (responses: Record<string, InputResponse>) => void;
}

/** The forms that the server requests, one after the other; the call goes on after the last one. */
function InputForms({ requests, onRespond }: InputFormsProps) {
  const [responses, setResponses] = useState<Record<string, InputResponse>>({});
  const open = requests.find(([name]) => responses[name] === undefined);
  if (!open) return null;
  const [name, { method, params }] = open;
  const respond = (response: InputResponse) => {
    const all = { ...responses, [name]: response };
    if (requests.every(([other]) => all[other])) onRespond(all);
    else setResponses(all);
  };
  const refusals = (
    <>
      <button type="button" onClick={() => respond({ action: 'decline' })}>
        Decline
      </button>
      <button type="button" class="plain" onClick={() => respond({ action: 'cancel' })}>
        Dismiss
      </button>
    </>
  );
  if (method !== 'elicitation/create') return <p class="note wrong">The server requests {method}, which this page cannot answer.</p>;
  return (
    <section class="note input-request" aria-label="The server needs your input">
      <div>
        <h2>{params.message ?? 'The server needs your input'}</h2>
        {params.mode === 'url' ? (
          <>
            <p>
              Open <code>{params.url}</code> in another window, then continue.
            </p>
            <div class="toolbar">
              <button type="button" class="primary" onClick={() => respond({ action: 'accept' })}>
                Continue
              </button>
              {refusals}
            </div>
          </>
        ) : (
          <SchemaForm key={name} schema={params.requestedSchema ?? {}} initial={defaultsOf(params.requestedSchema?.properties)} onSubmit={(content) => respond({ action: 'accept', content })}>
            <button type="submit" class="primary">
              Send
            </button>
            {refusals}
          </SchemaForm>
        )}
      </div>
    </section>
  );
}

function defaultsOf(properties: Record<string, { default?: unknown }> = {}): Values {
  return Object.fromEntries(Object.entries(properties).map(([name, { default: value }]) => [name, value]));
}

function Messages({ exchanges }: { exchanges: Exchange[] }) {
  if (exchanges.length === 0) return <p class="muted empty">No message has been answered yet.</p>;
  return (
    <>
      {exchanges.flatMap(({ request, reply }) => [
        <MessageText key={`${request.id}-request`} title={`Request ${request.id}`} message={request} />,
        <MessageText key={`${request.id}-reply`} title={`Response ${request.id}`} message={reply} />,
      ])}
    </>
  );
}

function MessageText({ title, message }: { title: string; message: unknown }) {
  const text = JSON.stringify(message, null, 2);
  return (
    <section class="call-form">
      <header>
        <h3>{title}</h3>
        <CopyButton text={text} what={title} />
      </header>
      <pre class="message" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}
