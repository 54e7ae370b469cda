import { Compass } from "lucide-react";
import { useState } from "react";
import { Link, useLocation, useNavigate } from "react-router";

import { Button } from "../ui/button";
import { Search } from "../ui/field";
import { PageHead, usePlace } from "../ui/page";
import { nearest } from "./nearest";
import { ALL } from "../places";

/** Page for an unknown address: says what was requested and suggests similar addresses. */
export function Missing() {
  const { pathname } = useLocation();
  const [wanted, setWanted] = useState("");
  const navigate = useNavigate();
  usePlace({ crumbs: [{ name: "Not found" }] });
  const paths = ALL.map((to) => to.path);
  const above = paths.filter((path) => pathname.startsWith(`${path}/`));
  const near = [...new Set([...above, ...nearest(pathname, paths)])].map((path) => ALL.find((to) => to.path === path)!);
  return (
    <>
      <PageHead title="Page not found" />
      <p className="ink2" style={{ overflowWrap: "anywhere" }}>
        <Compass /> <code>{pathname}</code> does not exist. {near.length > 0 && "Did you mean one of these?"}
      </p>
      <ul className="chips">
        {near.map((to) => (
          <li key={to.path}>
            <Link className="btn plain" to={to.path}>
              {to.icon}
              <span>{to.name}</span>
            </Link>
          </li>
        ))}
      </ul>
      <form
        className="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          navigate(`/experiments?q=${encodeURIComponent(wanted)}`);
        }}
      >
        <Search label="Search experiments" value={wanted} onChange={setWanted} />
        <Button type="submit">Search</Button>
      </form>
    </>
  );
}
