/** First steps on a cluster on which nothing has run yet. */

import { FlaskConical } from "lucide-react";

import { Copyable } from "../../ui/text";

const STEPS = (origin: string) => [
  {
    name: "Point the command line at this cluster",
    command: `export DET_MASTER=${origin}`,
    hint: "Run this in your shell; then det user whoami checks the connection.",
  },
  {
    name: "Submit an experiment",
    command: "det experiment create 1_metrics.yaml .",
    hint: "Run it in examples/core_api, whose experiments take seconds, or in your own folder. In the browser, use New experiment.",
  },
  {
    name: "Watch it here",
    command: "det experiment list",
    hint: "Charts, logs and checkpoints appear on its page with the first report.",
  },
];

export const FirstSteps = () => (
  <div className="first-steps">
    <div className="first-head">
      <FlaskConical className="l" />
      <div>
        <b className="b">Run your first experiment</b>
        <p className="ink2 sm">Nothing has run on this cluster yet. Three steps get you there.</p>
      </div>
    </div>
    <ol>
      {STEPS(location.origin).map(({ name, command, hint }) => (
        <li key={name}>
          <b className="m">{name}</b>
          <Copyable text={command} />
          <p className="ink3 sm">{hint}</p>
        </li>
      ))}
    </ol>
  </div>
);
