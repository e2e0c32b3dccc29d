// The plan of a statement as a tree, from the indented text that each kind of database has.
import { useMemo } from 'preact/hooks';
import { count } from '../format';

export interface PlanNode {
  name: string;
  detail: string;
  children: PlanNode[];
}

export interface Plan {
  facts: [string, string][];
  /** The plans that the text has, the most detailed one first: that of the statement and that of its execution. */
  trees: { title: string; roots: PlanNode[] }[];
}

export function parsePlan(text: string): Plan {
  const [head = '', ...parts] = text.split('\n\n');
  const facts = head.split('\n').flatMap((line): [string, string][] => {
    const found = /^(Estimated rows|Estimated bytes read|First row): (.*)$/.exec(line);
    return found ? [[found[1]!, found[2]!]] : [];
  });
  const trees = parts.map((part) => {
    const title = /^(\w+ plan):\n/.exec(part);
    return { title: title?.[1] ?? 'Plan', roots: parseTree(title ? part.slice(title[0].length) : part) };
  });
  return { facts, trees: trees.reverse() };
}

function parseTree(text: string): PlanNode[] {
  const roots: PlanNode[] = [];
  const open: { indent: number; node: PlanNode }[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const indent = line.length - line.trimStart().length;
    const node = parseLine(line.trim());
    while (open.length > 0 && open[open.length - 1]!.indent >= indent) open.pop();
    const parent = open[open.length - 1]?.node;
    (parent?.children ?? roots).push(node);
    open.push({ indent, node });
  }
  return roots;
}

function parseLine(line: string): PlanNode {
  const name = /^[A-Za-z][\w ]*?(?=: | \(| where | filter: |$)/.exec(line)?.[0] ?? line;
  return { name, detail: line.slice(name.length).replace(/^:?\s*/, ''), children: [] };
}

export function PlanTree({ text }: { text: string }) {
  const { facts, trees } = useMemo(() => parsePlan(text), [text]);
  return (
    <div class="plan" tabIndex={0} role="region" aria-label="Plan">
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{/^\d+$/.test(value) ? count(Number(value)) : value}</dd>
          </div>
        ))}
      </dl>
      {trees.map(({ title, roots }, index) => (
        <details key={title} open={index === 0}>
          <summary>{title}</summary>
          <ul class="tree">
            {roots.map((node, position) => (
              <Node key={position} node={node} />
            ))}
          </ul>
        </details>
      ))}
    </div>
  );
}

function Node({ node }: { node: PlanNode }) {
  return (
    <li>
      <div class="plan-node">
        <span class="plan-name">{node.name}</span> <span class="plan-detail">{node.detail}</span>
      </div>
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child, index) => (
            <Node key={index} node={child} />
          ))}
        </ul>
      )}
    </li>
  );
}
