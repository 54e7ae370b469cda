"""What administrators do, as a part of the story: users, groups, workspaces, tokens, webhooks."""

from det_contracts import commands, queries
from det_contracts.administration import BindPool, RebuildDatabase, RetryDecisions, SetLogging, SkipEvent
from det_contracts.commands import Password
from det_contracts.creation import Once
from det_contracts.events import gateway
from det_contracts.events.gateway import Grant
from det_contracts.webhook_commands import RemoveWebhook, SetWebhook, TryWebhook
from services.webhooks.commands import StateAttempt


class Administration:
    """Users, groups, rights, workspaces, sessions, tokens and webhooks come and go."""

    def people(self):
        ask = self.ask
        user = ask(commands.SetUser(username="fresh", user="admin", once=Once("x", "x", "d")))
        ask(commands.SetUser(user_id=user, username="other", admin=True, user="admin"))
        ask(commands.SetUser(user_id=user, admin=False, user="admin"))
        ask(commands.SetPassword(user_id=user, password=Password("00", "00"), user="admin"))
        ask(commands.SetFirstPassword(user_id=1, password=Password(hashed="00")))
        before, renewed = Password("00", "00"), Password(hashed="00")
        ask(commands.RenewPassword(user_id=user, before=before, password=renewed))
        ask(commands.ResetPassword(username="other", password=renewed, admin=True, by="ann"))
        ask(commands.SetUser(user_id=user, admin=False, user="admin"))
        setting = gateway.Setting("path", "key", "value")
        ask(commands.KeepSettings(user_id=user, settings=(setting,), user="admin"))
        ask(commands.ViewProject(user_id=user, project_id=1, user="admin"))
        group = ask(commands.SetGroup(name="fresh", add=(user,), user="admin"))
        ask(commands.SetGroup(group_id=group, name="other", remove=(user,), add=(1,), user="admin"))
        ask(commands.SetAuthz(mode="rbac"))
        space = ask(commands.SetWorkspace(name="fresh", user="admin"))
        grants = [Grant("Editor", space), Grant("Viewer")]
        assignments = tuple(commands.Assignment(f"group-{group}", grant) for grant in grants)
        ask(commands.AssignRoles(add=assignments, user="admin"))
        ask(commands.AssignRoles(remove=assignments[:1], user="admin"))
        ask(commands.SetQuota(holder=f"group-{group}", jobs=1, user="admin"))
        ask(commands.RemoveGroup(group_id=group, user="admin"))
        ask(RetryDecisions(owner="searcher", user="admin"))
        ask(
            SkipEvent(
                owner="searcher", stream="CONTROL", position=10**9, subject="control.searcher.experiment.1",
                error="KeyError(7)", reason="written by a release that was withdrawn", user="admin",
            )
        )  # fmt: skip
        ask(RebuildDatabase(owner="searcher", user="admin"))
        ask(RebuildDatabase(owner="metrics", user="admin"))
        ask(SetLogging(level="info", color=False, user="admin"))
        ask(commands.SetAuthz(mode="basic"))
        ask(commands.SetWorkspace(workspace_id=space, pinned=True, user="admin"))
        for change, bound in (("add", (1, space)), ("replace", (2, space))):
            ask(BindPool(pool="bound", workspaces=bound, change=change, user="admin"))
        pools = {"default_compute_pool": "bound", "default_aux_pool": "bound"}
        ask(commands.SetWorkspace(workspace_id=space, **pools, user="admin"))
        project = ask(commands.SetProject(workspace_id=space, name="fresh", user="admin"))
        among_many = ask(commands.SetProject(workspace_id=2, name="fresh", user="admin"))
        ask(commands.RemoveProject(project_id=project, user="admin"))
        ask(commands.RemoveProject(project_id=among_many, user="admin"))
        ask(commands.RemoveWorkspace(workspace_id=space, user="admin"))
        ask(commands.SetTemplate(name="fresh", config={}, user="ann"))
        ask(commands.RemoveTemplate(name="fresh", user="ann"))
        ask(commands.CloseSession(session_id="fresh", user="ann"))
        opened = {"user_id": user, "address": "a", "client": "c", "user": "ann"}
        ask(commands.OpenSession(session_id="first", opened_at=0.0, until=1.0, **opened))
        # The one that is over is forgotten.
        ask(commands.OpenSession(session_id="second", opened_at=1e10, until=2e10, **opened))
        ask(commands.RenewSession(session_id="second", until=3e10))
        ask(commands.CloseSession(session_id="second", user="admin"))
        made = {"user_id": user, "scope": "all", "lives_s": 1e6, "user": "admin"}
        ask(commands.CreateToken(token_id="token", name="fresh", digest="00", **made))
        ask(commands.RevokeToken(token_id="token", user="admin"))
        claims = {"username": "fresh elsewhere", "display_name": "", "groups": (), "admin": None}
        for provision in (True, False):
            of = {"managed": ("fresh elsewhere",), "member_of": ("fresh elsewhere",) * provision}
            ask(commands.SignIn(issuer="https://i", subject="fresh", provision=provision, **claims, **of))

    def webhooks(self):
        """A webhook is told of an experiment and of a test, in vain and with success, and goes."""
        made = {"kind": "SLACK", "host": "h", "url": "u", "signing_key": "k", "user": "admin"}
        hook = self.ask(SetWebhook(states=("PAUSED",), once=Once("h", "h", "d"), **made))
        self.change(self.submit(pool="none"), "pause")
        due = self.cluster.states["webhooks"].next_delivery(hook).due.delivery_id
        result = {"took_s": 1.0, "chance": 0.5}
        self.ask(StateAttempt(delivery_id=due, attempt=1, status=500, problem="500", **result))
        self.ask(StateAttempt(delivery_id=due, attempt=2, status=204, **result))
        test = self.ask(TryWebhook(webhook_id=hook, user="admin"))
        self.ask(StateAttempt(delivery_id=test, attempt=1, problem="away", **result))
        self.ask(StateAttempt(delivery_id="due1", attempt=1, status=204, **result))
        self.query(queries.Webhooks())
        self.query(queries.Deliveries(webhook_id=self.of.hook, limit=5))
        self.ask(RemoveWebhook(webhook_id=hook, user="admin"))
