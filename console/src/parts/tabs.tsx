// Tabs, which the arrow keys change.

interface TabsProps<Name extends string> {
  label: string;
  names: Record<Name, string>;
  chosen: Name;
  onChoose: (name: Name) => void;
}

export function Tabs<Name extends string>({ label, names, chosen, onChoose }: TabsProps<Name>) {
  const all = Object.keys(names) as Name[];
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const next = all[(all.indexOf(chosen) + step + all.length) % all.length]!;
    onChoose(next);
    const buttons = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role=tab]');
    buttons[all.indexOf(next)]?.focus();
  };
  return (
    <div role="tablist" aria-label={label} class="tab-list" onKeyDown={onKeyDown}>
      {all.map((name) => (
        <button key={name} type="button" role="tab" aria-selected={chosen === name} tabIndex={chosen === name ? 0 : -1} onClick={() => onChoose(name)}>
          {names[name]}
        </button>
      ))}
    </div>
  );
}
