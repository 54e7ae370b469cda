import { useState } from "react";

import { KeyTable } from "../../shell/help";
import { useDensity, useTheme } from "../../shell/look";
import { Segments } from "../../ui/button";
import { Card, Facts } from "../../ui/card";
import { Switch } from "../../ui/field";
import { lettersOff, switchLetters } from "../../ui/keys";

export function Look() {
  const [theme, setTheme] = useTheme();
  const [density, setDensity] = useDensity();
  return (
    <Card title="Appearance, in this browser">
      <Facts
        facts={[
          [
            "Theme",
            <Segments
              key="theme"
              name="Theme"
              value={theme}
              options={[
                ["", "System"],
                ["light", "Light"],
                ["dark", "Dark"],
              ]}
              onChange={setTheme}
            />,
          ],
          [
            "Density",
            <Segments
              key="density"
              name="Density"
              value={density}
              options={[
                ["compact", "Compact"],
                ["normal", "Normal"],
                ["roomy", "Roomy"],
              ]}
              onChange={setDensity}
            />,
          ],
        ]}
      />
    </Card>
  );
}

export function KeySettings() {
  const [on, setOn] = useState(!lettersOff());
  const change = (next: boolean) => {
    switchLetters(next);
    setOn(next);
  };
  return (
    <Card title="Keys">
      <div className="stack">
        <Switch
          label="Single-key shortcuts"
          checked={on}
          onChange={change}
          hint="When off, everything is still reachable with Ctrl K, Tab, arrows and Enter."
        />
        <KeyTable />
      </div>
    </Card>
  );
}
