import { useState } from 'preact/hooks';
import { Icon } from './icons';

const SHOWN_MILLISECONDS = 1500;

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [outcome, setOutcome] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome('Copied');
    } catch {
      // Browsers refuse it without TLS, except on this machine.
      setOutcome('The browser refused to copy');
    }
    setTimeout(() => setOutcome(''), SHOWN_MILLISECONDS);
  };
  return (
    <button type="button" class="plain" aria-label={`Copy ${what}`} onClick={copy}>
      <Icon name={outcome === 'Copied' ? 'done' : 'copy'} /> <span role="status">{outcome || 'Copy'}</span>
    </button>
  );
}
