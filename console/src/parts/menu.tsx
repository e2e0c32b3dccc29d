// A button with a list of actions. The browser closes the list on Escape and on a click beside it.
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

interface MenuProps {
  /** What the button shows. */
  label: ComponentChildren;
  /** The name of the button, if its content is no text. */
  name?: string;
  class?: string;
  onOpen?: () => void;
  children: ComponentChildren;
}

export function Menu({ label, name, class: className, onOpen, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = (event: { newState: string }) => {
    if (event.newState !== 'open') return;
    onOpen?.();
    requestAnimationFrame(() => placeBeside(list.current!, button.current!.getBoundingClientRect()));
  };
  const close = (event: Event) => {
    if ((event.target as HTMLElement).closest('button, a')) list.current?.hidePopover();
  };
  return (
    <>
      <button ref={button} type="button" class={className ?? 'plain'} popovertarget={id} aria-label={name} aria-haspopup="true">
        {label}
      </button>
      <div ref={list} id={id} class="menu" popover="auto" onToggle={place} onClick={close}>
        {children}
      </div>
    </>
  );
}

/** Moves `shown` below `anchor`, or above it where there is more room, within the window. */
export function placeBeside(shown: HTMLElement, anchor: DOMRect): void {
  const { width, height } = shown.getBoundingClientRect();
  const margin = 8;
  const left = Math.max(margin, Math.min(anchor.left, innerWidth - width - margin));
  const below = anchor.bottom + 4;
  const top = below + height <= innerHeight - margin ? below : Math.max(margin, anchor.top - height - 4);
  shown.style.left = `${left}px`;
  shown.style.top = `${top}px`;
}
