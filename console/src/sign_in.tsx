// Sign-in with a key. The form is one that password managers know, so that a browser can keep the key for its user.
import { useState } from 'preact/hooks';
import { key, request, SIGN_IN, signInReason } from './api/client';
import { ProblemNote } from './parts/problem';

export function SignIn({ reason }: { reason: string }) {
  const [error, setError] = useState<unknown>(null);
  const [isChecking, setChecking] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const entered = String(new FormData(event.target as HTMLFormElement).get('key') ?? '').trim();
    if (!entered) return;
    setChecking(true);
    setError(null);
    try {
      await request('rest/tools', { key: entered });
      key.value = entered;
      signInReason.value = null;
    } catch (refused) {
      setError(refused);
    } finally {
      setChecking(false);
    }
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>{reason}</p>
      <input class="hidden" type="text" name="user" autocomplete="username" value="tidegate" readOnly tabIndex={-1} aria-hidden="true" />
      <label>
        Key or token
        <input type="password" name="key" autocomplete="current-password" required autofocus spellcheck={false} />
      </label>
      <p class="muted">
        The administrator of this server makes keys with <code>tidegate key add</code>. The page keeps the key until it is
        closed or loaded again.
      </p>
      {error !== null && <ProblemNote error={error} />}
      <div class="toolbar">
        <button type="submit" class="primary" disabled={isChecking}>
          Sign in
        </button>
        <span class="fill" />
        {error === null && reason === SIGN_IN && (
          <button type="button" class="plain" onClick={() => (signInReason.value = null)}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}
