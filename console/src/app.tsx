// The frame of all views: the header, the view that the address names, and the sign-in.
import { effect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { base, isReachable, key, Problem, SIGN_IN, signInReason } from './api/client';
import { databases, forgetCatalog, loadDatabases, loadTools, mayUse, tools } from './api/catalog';
import { forgetViewer } from './api/rows';
import { DataView } from './data/data_view';
import { OverviewView } from './overview/overview_view';
import { Icon, type IconName } from './parts/icons';
import { lazy } from './parts/lazy';
import { Loading, ProblemNote } from './parts/problem';
import { THEMES, theme, type Theme } from './parts/theme';
import { QueryView } from './query/query_view';
import { go, link, route } from './route';
import { SignIn } from './sign_in';

const ToolsView = lazy('the view', () => import('./tools/tools_view').then((module) => module.ToolsView));
const LogsView = lazy('the view', () => import('./logs/logs_view').then((module) => module.LogsView));
const MetricsView = lazy('the view', () => import('./metrics/metrics_view').then((module) => module.MetricsView));
const IngestionView = lazy('the view', () => import('./ingestion/ingestion_view').then((module) => module.IngestionView));
const NetworkView = lazy('the view', () => import('./network/network_view').then((module) => module.NetworkView));
const AgentsView = lazy('the view', () => import('./agents/agents_view').then((module) => module.AgentsView));
const AccessView = lazy('the view', () => import('./access/access_view').then((module) => module.AccessView));

interface View {
  name: string;
  title: string;
  view: ComponentType;
  /** The tools of which the viewer needs one. The header has no link to a view that would be empty. */
  needs?: string[];
}

const VIEWS: View[] = [
  { name: 'overview', title: 'Overview', view: OverviewView },
  { name: 'data', title: 'Data', view: DataView },
  { name: 'query', title: 'Query', view: QueryView },
  { name: 'tools', title: 'Tools', view: ToolsView },
  { name: 'logs', title: 'Logs', view: LogsView },
  { name: 'metrics', title: 'Metrics', view: MetricsView },
  { name: 'ingestion', title: 'Ingestion', view: IngestionView, needs: ['ingest_status', 'append_rows'] },
  { name: 'network', title: 'Network', view: NetworkView, needs: ['list_nodes'] },
  { name: 'agents', title: 'Agents', view: AgentsView, needs: ['list_jobs'] },
  { name: 'access', title: 'Access', view: AccessView },
];

/** Reads what the viewer may use. */
async function loadAccess(): Promise<void> {
  forgetCatalog();
  forgetViewer();
  tools.value = null;
  databases.value = null;
  await loadTools();
  signInReason.value = null;
  await loadDatabases();
}

effect(() => {
  const view = VIEWS.find(({ name }) => name === route.value.path[0]);
  document.title = view ? `${view.title} · Tidegate` : 'Tidegate';
});

export function App() {
  const [error, setError] = useState<unknown>(null);
  const load = () => {
    setError(null);
    loadAccess().catch(setError);
  };
  useEffect(load, [key.value]);
  const chosen = VIEWS.find(({ name }) => name === route.value.path[0]);
  useEffect(() => {
    if (!chosen) go(['overview']);
  }, [chosen]);
  const isLocked = signInReason.value !== null;
  const isEmpty = tools.value !== null && tools.value.length === 0;
  return (
    <>
      <Header />
      {!isReachable.value && <Unreachable onAnswer={load} />}
      <main>
        {isLocked && <SignIn reason={signInReason.value!} />}
        {!isLocked && isEmpty && <SignIn reason="Callers without a key may use nothing here." />}
        {!isLocked && !isEmpty && <Content error={error} view={chosen?.view} onRetry={load} />}
      </main>
    </>
  );
}

interface ContentProps {
  error: unknown;
  view: ComponentType | undefined;
  onRetry: () => void;
}

function Content({ error, view: View, onRetry }: ContentProps) {
  if (error instanceof Problem && error.status === 401) return null;
  if (error) {
    return (
      <ProblemNote error={error}>
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      </ProblemNote>
    );
  }
  if (!tools.value || !databases.value || !View) return <Loading what="what you may use" />;
  return <View />;
}

function isShown({ name, needs }: View): boolean {
  return !needs || needs.some((tool) => mayUse.value.has(tool)) || route.value.path[0] === name;
}

function Header() {
  const isSignedIn = key.value !== null;
  return (
    <header class="app-header">
      <a class="brand" href={link(['overview'])} aria-label="Tidegate">
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M5 12c3.7-4 7.3-4 11 0s7.3 4 11 0M5 20c3.7-4 7.3-4 11 0s7.3 4 11 0" />
        </svg>
        <span>Tidegate</span>
      </a>
      <nav aria-label="Views">
        {VIEWS.filter(isShown).map(({ name, title }) => (
          <a key={name} href={link([name])} aria-current={route.value.path[0] === name ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <span class="fill" />
      <ThemeButton />
      {isSignedIn ? (
        <button type="button" class="plain" onClick={() => (key.value = null)}>
          Sign out
        </button>
      ) : (
        signInReason.value === null && (
          <button type="button" class="plain" onClick={() => (signInReason.value = SIGN_IN)}>
            Sign in
          </button>
        )
      )}
    </header>
  );
}

const THEME_ICONS: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' };

function ThemeButton() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  const name = `Colours: ${theme.value}; change to ${next}`;
  return (
    <button type="button" class="plain" aria-label={name} title={name} onClick={() => (theme.value = next)}>
      <Icon name={THEME_ICONS[theme.value]} />
    </button>
  );
}

const RETRY_MILLISECONDS = 2000;

/** Tries again until the server answers. */
function Unreachable({ onAnswer }: { onAnswer: () => void }) {
  useEffect(() => {
    const timer = setInterval(() => {
      fetch(new URL('health', base), { cache: 'no-store' })
        .then((response) => {
          if (!response.ok) return;
          isReachable.value = true;
          if (!tools.value) onAnswer();
        })
        .catch(() => {});
    }, RETRY_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="banner" role="status">
      The server does not answer. The page tries again every two seconds.
    </div>
  );
}
