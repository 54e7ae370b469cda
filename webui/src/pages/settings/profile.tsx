import { type FormEvent, useState } from "react";

import type { User } from "../../api/types";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { PasswordField, TextField } from "../../ui/field";
import { useAct } from "./change";

export function Profile({ user }: { user: User }) {
  const act = useAct();
  const path = `users/${user.id}`;
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void act("PATCH", path, { displayName: new FormData(event.currentTarget).get("name") }, "Saved the name");
  };
  return (
    <>
      <Card title={`You are ${user.username}`}>
        <form className="form" onSubmit={save}>
          <TextField
            label="Display name"
            name="name"
            defaultValue={user.displayName}
            autoComplete="name"
            hint="The name that others see next to what you do."
          />
          <div className="foot">
            <Button type="submit" kind="primary">
              Save
            </Button>
          </div>
        </form>
      </Card>
      <NewPassword path={path} />
    </>
  );
}

/** Existing sessions end, including this one, so the user signs in again. */
function NewPassword({ path }: { path: string }) {
  const act = useAct();
  const [error, setError] = useState("");
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (form.get("password") !== form.get("again")) return setError("The passwords do not match.");
    setError("");
    void act("PATCH", path, { password: form.get("password"), isHashed: false }, "Password changed. Sign in with the new one");
  };
  return (
    <Card title="Password">
      <form className="form" onSubmit={save}>
        <PasswordField
          label="New password"
          name="password"
          autoComplete="new-password"
          required
          hint="Ends all of your sessions, including this one."
        />
        <PasswordField label="Repeat password" name="again" autoComplete="new-password" required error={error} />
        <div className="foot">
          <Button type="submit">Change password</Button>
        </div>
      </form>
    </Card>
  );
}
