// A part of the page that is loaded when it is shown for the first time.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Loading, ProblemNote } from './problem';

/** `what` names the part while it is loaded. */
export function lazy<Props extends object>(what: string, load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return (props: Props) => {
    const [Part, setPart] = useState(() => loaded);
    const [error, setError] = useState<unknown>(null);
    useEffect(() => {
      if (Part) return;
      load().then((part) => {
        loaded = part;
        setPart(() => part);
      }, setError);
    }, []);
    if (error !== null) return <ProblemNote error={error} />;
    return Part ? <Part {...props} /> : <Loading what={what} />;
  };
}
