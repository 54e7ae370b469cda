import { useQueryClient } from "@tanstack/react-query";
import { LogIn } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useLocation, useNavigate, useSearchParams } from "react-router";

import { ApiError, query, send } from "../api/client";
import { useData } from "../api/data";
import { useTheme } from "../shell/look";
import { Mark } from "../shell/mark";
import { Button, LinkButton } from "../ui/button";
import { Note } from "../ui/card";
import { PasswordField, TextField } from "../ui/field";
import { usePlace } from "../ui/place";
import { Failure } from "../ui/status";
import { Curves } from "./curves";
import "./login.css";

interface Provider {
  name: string;
  ssoUrl: string;
}

export function Login() {
  useTheme();
  usePlace({ crumbs: [], title: "Sign in" });
  const master = useData<{ clusterName: string; ssoProviders: Provider[] }>("master", []);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  // The page of a task, which is outside of the web UI. No other address may redirect from here.
  const task = useSearchParams()[0]
    .get("to")
    ?.match(/^\/proxy\/[\w-]+(\/[^\\]*)?$/)?.[0];
  const { from = "/dashboard", ended } = (useLocation().state ?? {}) as { from?: string; ended?: string };
  const enter = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    try {
      await send("POST", "auth/login", { username: form.get("username"), password: form.get("password") });
      client.clear();
      if (task) window.location.replace(task);
      else navigate(from, { replace: true });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const providers = master.data?.ssoProviders ?? [];
  const refused = error instanceof ApiError && error.status < 500;
  return (
    <main className="sign-in">
      <Curves />
      <form className="card" onSubmit={enter}>
        <div className="brand">
          <Mark />
          <div>
            <h1>Steadfast</h1>
            <p className="cut" title={master.data?.clusterName}>
              {master.data ? `cluster ${master.data.clusterName}` : "\u00a0"}
            </p>
          </div>
        </div>
        {ended && (
          <Note kind="info" role="status">
            {ended}
          </Note>
        )}
        <TextField label="User" name="username" defaultValue="determined" autoComplete="username" required />
        <PasswordField
          label="Password"
          name="password"
          autoComplete="current-password"
          error={refused ? `${error.message}. An administrator can set another password: det user change-password.` : undefined}
        />
        <Button type="submit" kind="primary" icon={<LogIn />} disabled={busy} autoFocus>
          Sign in
        </Button>
        {providers.map((provider) => (
          <LinkButton key={provider.ssoUrl} href={provider.ssoUrl + query({ return: `/det${from}` })}>
            Sign in with {provider.name}
          </LinkButton>
        ))}
        {error && !refused ? <Failure error={error} /> : null}
        {!providers.length && (
          <p className="hint">A new cluster has two users, determined and admin, with empty passwords: just press Enter.</p>
        )}
      </form>
    </main>
  );
}
