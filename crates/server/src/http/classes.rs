//! Routes with their admission classes. The class of a route comes from the request that the route
//! serves, and a route cannot be added without one.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::Method;
use tenure_coordinator::{Request, RequestClass};
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::PathItem;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;

/// The admission classes of routes. A route that is not here is always admitted.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    by_route: HashMap<String, Vec<(Method, RequestClass)>>,
}

impl Classes {
    /// The admission class of a request; none if it is always admitted. A method that the route does
    /// not take is answered like a read.
    pub(crate) fn of(&self, method: &Method, route: &str) -> Option<RequestClass> {
        let methods = self.by_route.get(route)?;
        let found = methods.iter().find(|(known, _)| known == method);
        Some(found.map_or(RequestClass::Other, |(_, class)| *class))
    }

    /// Sets the class of a route that takes every method.
    pub(super) fn set<R: Request>(&mut self, route: &str) {
        let all = [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH];
        let methods = all.into_iter().map(|method| (method, R::CLASS)).collect();
        self.by_route.insert(route.to_owned(), methods);
    }

    fn add(&mut self, route: &str, item: &PathItem, class: RequestClass) {
        let operations = [
            (&item.get, Method::GET),
            (&item.post, Method::POST),
            (&item.put, Method::PUT),
            (&item.delete, Method::DELETE),
            (&item.patch, Method::PATCH),
        ];
        let methods = self.by_route.entry(route.to_owned()).or_default();
        for (operation, method) in operations {
            methods.extend(operation.as_ref().map(|_| (method, class)));
        }
    }
}

/// Routes under construction.
pub(super) struct ClassedRouter {
    router: OpenApiRouter<Arc<App>>,
    pub(super) classes: Classes,
}

impl ClassedRouter {
    pub(super) fn new(document: OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), classes: Classes::default() }
    }

    /// Adds a route that serves this request.
    pub(super) fn serve<R: Request>(self, routes: UtoipaMethodRouter<Arc<App>>) -> Self {
        self.with_class(R::CLASS, routes)
    }

    /// Adds a route that reads or writes files, and sends no request of its own.
    pub(super) fn files(self, routes: UtoipaMethodRouter<Arc<App>>) -> Self {
        self.with_class(RequestClass::Other, routes)
    }

    /// Adds a route that is always admitted.
    pub(super) fn open(self, routes: UtoipaMethodRouter<Arc<App>>) -> Self {
        Self { router: self.router.routes(routes), ..self }
    }

    /// The routes, their document and their classes.
    pub(super) fn finish(self) -> (axum::Router<Arc<App>>, OpenApi, Classes) {
        let (router, document) = self.router.split_for_parts();
        (router, document, self.classes)
    }

    fn with_class(mut self, class: RequestClass, routes: UtoipaMethodRouter<Arc<App>>) -> Self {
        for (route, item) in &routes.1.paths {
            self.classes.add(route, item, class);
        }
        self.open(routes)
    }
}
