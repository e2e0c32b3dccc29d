// A refusal or a failure as the viewer reads it: what is wrong, where, and what to do.
import type { ComponentChildren } from 'preact';
import { Problem } from '../api/client';
import { Icon } from './icons';

interface ProblemNoteProps {
  error: unknown;
  /** What a click on a suggested name does. */
  onChoose?: ((choice: string) => void) | undefined;
  children?: ComponentChildren;
}

const CHOICES_MAX = 12;

export function ProblemNote({ error, onChoose, children }: ProblemNoteProps) {
  const problem = error instanceof Problem ? error : null;
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div class="note wrong" role="alert">
      <Icon name="warning" />
      <div>
        <p class="what">{message}</p>
        {problem && problem.violations.length > 0 && (
          <ul>
            {problem.violations.map(({ path, message: text }) => (
              <li key={path + text}>
                {path && <code>{path}</code>} {text}
              </li>
            ))}
          </ul>
        )}
        {problem && problem.choices.length > 0 && (
          <p class="choices">
            {onChoose ? 'Replace it with' : 'Nearest'}
            {problem.choices.slice(0, CHOICES_MAX).map((choice) =>
              onChoose ? (
                <button key={choice} type="button" class="small" onClick={() => onChoose(choice)}>
                  {choice}
                </button>
              ) : (
                <code key={choice}>{choice}</code>
              ),
            )}
          </p>
        )}
        {problem?.hint && <p class="hint">{problem.hint}</p>}
        {children}
      </div>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what}…
    </p>
  );
}
